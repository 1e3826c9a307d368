"""The data of each GPU framework: one `NAME.toml` and one `NAME.py` each.

`NAME.toml` is its data; `toolkit/inventory/knowledge/frameworks.py`, which finds these files, explains each key.
`NAME.py` has the function `read_build`: what the framework's files say of how it was built. A new framework is these
two files and a test.
"""
