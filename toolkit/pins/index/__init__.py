"""The package index: uv, files read in part, wheels and repositories."""
