"""Content kept by its hash: bases, layers of steps, package files. Knows nothing of how they are made."""
