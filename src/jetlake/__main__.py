"""`python -m jetlake` is the command `jetlake`."""

import sys

from jetlake.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
