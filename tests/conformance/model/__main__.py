"""Explore: `python -m tests.conformance.model --seed N`, for as long and on whichever server one likes."""

import argparse
import os
import sys
from pathlib import Path

import pytest


def main() -> int:
    """Run the tests of this folder with a seed and return their exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.model", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which conversations (default: 1)")
    parser.add_argument("--examples", type=int, metavar="N", help="how many of them")
    parser.add_argument("--server", choices=["embedded", "real"], default="embedded")
    asked = parser.parse_args()
    os.environ["LAMINA_TEST_SEED"] = str(asked.seed)
    os.environ["LAMINA_TEST_SERVER"] = asked.server
    if asked.examples:
        os.environ["LAMINA_TEST_EXAMPLES"] = str(asked.examples)
    return int(pytest.main(["-q", str(Path(__file__).parent)]))


if __name__ == "__main__":
    sys.exit(main())
