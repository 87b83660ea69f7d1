"""`msprobe.version`: the version of mindstudio-probe that this package follows."""

from __future__ import annotations

VERSION = "26.2.0"
