"""What is sent into a container as text: one check a framework, and `harness.py` in front of each."""
