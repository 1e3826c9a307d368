"""What is known of frameworks and of the names of modules: data that several packages share."""
