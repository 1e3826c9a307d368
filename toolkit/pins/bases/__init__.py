"""What a lock is made for: a base's Python, its packages and its digest."""
