"""What the host, the image and the driver say about the GPU, and what follows."""
