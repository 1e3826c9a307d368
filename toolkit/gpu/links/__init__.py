"""The links between a host's GPU and a framework's arithmetic: for each one what holds, or why it breaks."""
