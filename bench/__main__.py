"""The benchmark of the two servers: `python -m bench`."""

import sys

from bench.server import main

if __name__ == "__main__":
    sys.exit(main())
