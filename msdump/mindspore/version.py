"""`mindspore.version`: the version whose behaviour this is."""

from __future__ import annotations

from msdump.mindspore.releases import release_name

__version__ = release_name()
