"""The practice cluster: a real Slurm of virtual nodes on one machine."""
