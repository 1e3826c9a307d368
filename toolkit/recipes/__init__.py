"""Recipes and bases: what they are, where they are found, what is wrong with them."""
