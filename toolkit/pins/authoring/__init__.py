"""From code and lists that users have to a recipe."""
