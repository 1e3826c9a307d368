"""The lock as values and as text, and the protected set in it."""
