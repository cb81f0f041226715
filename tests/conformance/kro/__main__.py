"""Records what kro makes of its examples: `python -m tests.conformance.kro record`."""

import argparse
import sys

from tests.conformance.kro.record import record


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.kro", description=__doc__)
    parser.add_argument("command", choices=["record"])
    parser.parse_args()
    record()
    return 0


if __name__ == "__main__":
    sys.exit(main())
