"""Resolve requirements over a base to exact files, or explain why there is no solution."""
