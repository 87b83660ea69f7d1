"""`python -m msdump` is `msdump`."""

import sys

from msdump.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
