"""From the log of a job to a verdict: on the GPU, on the CPU, or the log does not say."""
