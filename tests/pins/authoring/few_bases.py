"""A catalogue of few bases."""

from pathlib import Path

from toolkit.recipes.bases import load_bases

BASES = load_bases(Path(__file__).with_name("bases.toml"))
