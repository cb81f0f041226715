"""
Random search beyond the recorded programs: `python -m tests.conformance.model --seed N`.

`python -m tests.conformance.model record` records new programs.
"""

import argparse
import os
import random
import sys
from pathlib import Path

import pytest


def main() -> int:
    """Search with a seed, or record, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.model", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["search", "record"], default="search")
    parser.add_argument("--seed", type=int, metavar="N", help="which of them (default: always others)")
    parser.add_argument("--examples", type=int, default=100, metavar="N", help="how many programs")
    parser.add_argument("--conversations", type=int, default=40, metavar="N", help="how many to record")
    parser.add_argument("--server", choices=["embedded", "real"], default="embedded", help="where to search")
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(10**6)
    print(f"--seed {seed}")
    if asked.what == "record":
        # Imported here because it imports hypothesis, which pytest has to import first.
        from tests.conformance.model.record import record

        record(seed, asked.examples, asked.conversations)
        return 0
    os.environ["LAMINA_TEST_SEED"] = str(seed)
    os.environ["LAMINA_TEST_SERVER"] = asked.server
    os.environ["LAMINA_TEST_EXAMPLES"] = str(asked.examples)
    return int(pytest.main(["-q", str(Path(__file__).with_name("search.py"))]))


if __name__ == "__main__":
    sys.exit(main())
