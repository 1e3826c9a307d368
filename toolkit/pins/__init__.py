"""Which packages an image gets so that its GPU framework stays as it is: protected set, resolution, lock, guard."""
