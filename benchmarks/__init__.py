"""ctk beside its peers, measured on one machine in one run: `make bench`."""
