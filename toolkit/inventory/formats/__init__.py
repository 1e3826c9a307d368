"""How an image is read: SIF, squashfs, overlay and sandbox as one tree."""
