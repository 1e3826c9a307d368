"""A layered image: layers made over a base, its metadata, and the SIF that holds all of it."""
