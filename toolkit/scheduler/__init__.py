"""Interface to the programs of the cluster's scheduler."""
