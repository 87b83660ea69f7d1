"""The viewer inside of a notebook (Jupyter, VS Code, marimo, Colab).

import msdump
msdump.view("dump")
"""

from __future__ import annotations

import os
import urllib.parse
from typing import TYPE_CHECKING

from msdump.analysis.compare.result import Comparison
from msdump.errors import ConfigError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.viewing.filling import Wanted

if TYPE_CHECKING:
    from msdump.viewing.widget import View

Shown = DumpDir | Comparison | DumpedTensor | str | os.PathLike[str]


def view(
    what: Shown,
    golden: DumpDir | str | os.PathLike[str] | None = None,
    *,
    mapping: str | os.PathLike[str] | None = None,
    height: int = 720,
) -> View:
    """Show a dump in a notebook, as the last expression of a cell.

    what     a dump or any folder of one; what `msdump.compare` returned; a tensor of a dump, whose operator is shown
    golden   a dump to compare with
    mapping  file of pairs of operators, where two dumps are compared
    height   of the frame, in pixels
    Raises: ConfigError without the packages of the extra `notebook`; FormatError when there is nothing at the path.
    """
    at = ""
    if isinstance(what, Comparison):
        if golden is not None:
            raise ConfigError("golden: expected none beside a comparison, which has its own. Leave it out.")
        shown = os.fspath(what.mine)
        other: str | None = os.fspath(what.golden)
    else:
        if isinstance(what, DumpedTensor):
            levels = (what.rank_id, what.graph_id, what.file.levels.iteration)
            step = "/".join("-" if level is None else str(level) for level in levels)
            at = f"#/operators/{step}?{urllib.parse.urlencode({'q': what.op_name})}"
            what = os.path.dirname(what.path)
        shown = _path(what)
        other = None if golden is None else _path(golden)
    try:
        from msdump.viewing.widget import View
    except ImportError as error:
        raise ConfigError(
            f"view: expected the package {error.name}, got none. pip install 'msdump[notebook]'; the command "
            "`msdump view` shows the same in a browser."
        ) from error
    wanted = Wanted(shown, other, None if mapping is None else os.fspath(mapping))
    return View(wanted, at=at, height=height)


def _path(dump: DumpDir | str | os.PathLike[str]) -> str:
    return os.fspath(dump.path if isinstance(dump, DumpDir) else dump)
