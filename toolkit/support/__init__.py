"""Processes, files, errors, paths: knows nothing of containers."""
