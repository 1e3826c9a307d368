"""Rootfs readers (flat SIF, layered SIF, squashfs, sandbox folder), and what they hold; nothing is run."""
