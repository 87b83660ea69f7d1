"""Export of a dump to formats of other tools: a module for each, all from one reading of the dump.

from msdump.analysis.exporting import export
export("dump", "parquet", "dump.parquet")
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.errors import ConfigError, did_you_mean
from msdump.formats.selection import ALL_STEPS, StepSelection

if TYPE_CHECKING:
    from msdump.analysis.overview.contents import Contents
    from msdump.formats.dump_dir import DumpDir


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A value of `--to`.

    module     of this package, which has `export(contents, path) -> Written`
    path       where the export goes when the caller names no place
    is_folder  whether that is a folder
    takes_golden  whether a second dump adds to it
    has_exponents  whether it holds them, which take longer than the statistics
    """

    module: str
    meaning: str
    path: str
    is_folder: bool = False
    takes_golden: bool = False
    has_exponents: bool = False


FORMS = {
    "parquet": ExportForm(
        "tables", "a table of all tensors, for DuckDB, polars, pandas (needs pyarrow)", "dump.parquet", False, True
    ),
    "sqlite": ExportForm(
        "tables", "the same table in an SQLite database, for Datasette, DuckDB", "dump.sqlite", False, True
    ),
    "model-explorer": ExportForm(
        "model_explorer", "graphs with health and statistics, for Model Explorer", "model_explorer", True, True
    ),
    "msprobe": ExportForm("msprobe", "dump.json, stack.json and construct.json, for msprobe", "msprobe_dump", True),
    "perfetto": ExportForm("perfetto", "a timeline of operators and counters, for Perfetto", "dump.trace.json"),
    "tensorboard": ExportForm(
        "tensorboard", "statistics and exponents over iterations (needs tensorboardX)", "tensorboard", True, False, True
    ),
    "github": ExportForm(
        "annotations", "annotations on the lines of a pull request, for GitHub Actions", "-", False, True
    ),
    "sarif": ExportForm("annotations", "the same as SARIF 2.1.0, for code scanning", "dump.sarif", False, True),
}


@dataclass(frozen=True, slots=True)
class Written:
    """Result of an export.

    paths  of its files; empty where it went to standard output
    notes  one sentence each about what the export leaves out or cannot tell
    text   of an export to standard output
    """

    paths: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = ""


def export(
    dump: DumpDir | str | os.PathLike[str],
    to: str,
    path: str | os.PathLike[str] | None = None,
    golden: DumpDir | str | os.PathLike[str] | None = None,
    selection: StepSelection = ALL_STEPS,
    **options: Any,
) -> tuple[Written, Contents]:
    """Write a dump in a form of `FORMS`; what was written, and what was read.

    path      None: the form's own name in the current folder; "-" gives the text instead of writing it, where the form
              is one file of text
    golden    dump to compare with, for the forms that take one
    options   mapping, thread_count and progress, as of `tensor_statistics` and `compare_dumps`
    Raises:   ConfigError for a form that is not there, a golden dump that it does not take, an absent package, or a
              place that is taken by something else; FormatError when there is no dump; WriteError.
    """
    form = FORMS.get(to)
    if form is None:
        advice = did_you_mean(to, FORMS)
        raise ConfigError(f"export: expected one of {', '.join(FORMS)}, got {to!r}. {advice}".rstrip())
    if golden is not None and not form.takes_golden:
        able = ", ".join(name for name, other in FORMS.items() if other.takes_golden)
        raise ConfigError(f"export: expected one dump for {to}, got a golden one as well. These take two: {able}.")
    from msdump.analysis.overview.contents import Contents

    if form.has_exponents:
        from msdump.analysis.measurements import Measurements

        options["measurements"] = Measurements(has_exponents=True)
    contents = Contents(dump, golden, selection, **options)
    module = importlib.import_module(f"msdump.analysis.exporting.{form.module}")
    return module.export(contents, to, os.fspath(form.path if path is None else path)), contents
