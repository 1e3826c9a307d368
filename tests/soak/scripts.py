"""Job scripts of the worst words there are; `make test` has a small share of the same code."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.jobs.adversary import check_scripts

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ran = check_scripts(Path(name), count=options.count, seed_number=options.seed)
    print(f"{len(ran)} scripts ran as asked; the others were refused")
