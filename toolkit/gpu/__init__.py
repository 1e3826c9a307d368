"""GPU facts of the host, the image and the driver, and the conclusions."""
