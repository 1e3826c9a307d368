"""`python -m toolkit` is `ctk`."""

from toolkit.cli.main import main

main()
