"""The version of msdump, and the folder of its code."""

import os

__version__ = "1.0.0"

# With a separator at its end: the beginning of the path of each of its files, and of no other.
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
