"""From a target to an image: plan, execute, record."""
