"""From a job to a script, a submission and its state."""
