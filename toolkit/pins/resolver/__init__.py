"""From requirements and a base to exact files, or to the reason why there are none."""
