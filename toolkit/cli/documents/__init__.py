"""What `--json` prints, written out key by key: no attribute becomes public because a class has it.

A function takes a value and returns the keys of its document besides `schema` and `findings`; docs/schemas/ describes
them. Keys are snake_case, sizes are bytes (`size_bytes`), times are seconds (`seconds`). A command whose document is a
few plain values writes it itself.
"""
