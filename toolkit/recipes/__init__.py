"""Recipes and bases: models, catalogue, validation."""
