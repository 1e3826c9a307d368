"""What an image holds: interpreters, distributions, environment, system packages."""
