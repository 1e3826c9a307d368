"""Rootfs readers (flat SIF, layered SIF, squashfs, sandbox directory), and what they hold; nothing is run."""
