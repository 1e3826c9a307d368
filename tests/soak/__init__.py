"""What `make soak` repeats in large numbers; `make test` runs a small share of each with a fixed seed."""
