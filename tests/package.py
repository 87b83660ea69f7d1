"""The folder of the package that the tests import: that of this clone, or of a wheel that is installed."""

from pathlib import Path

import msdump

PACKAGE = Path(msdump.__file__).resolve().parent
