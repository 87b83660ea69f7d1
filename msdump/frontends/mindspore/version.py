"""`mindspore.version`: the version whose behaviour this is."""

from __future__ import annotations

__version__ = "2.0.0"
