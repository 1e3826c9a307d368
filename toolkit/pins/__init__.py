"""The protected set, the resolution, the lock, and the guard that runs at build time."""
