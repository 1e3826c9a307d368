"""The guard and the import step: what runs inside a build, and what its results mean."""
