"""ctk: containers on GPU clusters, built, proven and run."""

__version__ = "0.1.0"
