"""`python -m msdump.msaccucmp` takes the command lines of CANN's msaccucmp.py."""

import sys

from msdump.cli.msaccucmp import main

if __name__ == "__main__":
    sys.exit(main())
