"""Compares the embedded server with kube-apiserver: `python -m bench.server`, or `python -m bench`."""

import argparse
import sys
from pathlib import Path

from bench.run import compare
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Which
from tests.bed.trouble import BedError


def main() -> int:
    """Run the benchmark and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="measure one server only")
    parser.add_argument(
        "--rounds", type=int, default=2, metavar="N", help="rounds for each server (default: 2)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=3.0,
        metavar="S",
        help="duration of each kind of request (default: 3)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all figures of all rounds to this file"
    )
    asked = parser.parse_args()
    both: tuple[Which, ...] = ("real", "embedded")
    end_tidily_on_signals()
    try:
        return compare(
            (asked.only,) if asked.only else both, rounds=asked.rounds, seconds=asked.seconds, save=asked.json
        )
    except BedError as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
