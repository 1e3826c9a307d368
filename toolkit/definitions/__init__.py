"""The definition text, from a recipe."""
