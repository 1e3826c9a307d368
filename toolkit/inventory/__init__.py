"""What an image file holds, read without running it."""
