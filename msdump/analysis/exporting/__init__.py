"""Export of a dump to formats of other tools: a module for each, all from one reading of the dump.

from msdump.analysis.exporting import export
export("dump", "parquet", "dump.parquet")
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.errors import ConfigError, did_you_mean
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.selection import ALL_STEPS, StepSelection

if TYPE_CHECKING:
    from msdump.analysis.overview.contents import Contents
    from msdump.formats.dump_dir import DumpDir


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A value of `--to`.

    module     of this package, which has `export(contents, path) -> Written`
    path       where the export goes when the caller names no place; "" where the other tool's settings say it
    is_folder  whether that is a folder
    takes_golden  whether a second dump adds to it
    has_exponents  whether it holds them, which take longer than the statistics
    has_report     whether it holds the HTML report, which packages above this one write
    """

    module: str
    meaning: str
    path: str
    is_folder: bool = False
    takes_golden: bool = False
    has_exponents: bool = False
    has_report: bool = False


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
    "wandb": ExportForm(
        "trackers", "a run with curves and the report, for W&B (needs wandb)", "", True, False, True, True
    ),
    "mlflow": ExportForm("trackers", "the same for MLflow (needs mlflow)", "", True, False, True, True),
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
    write_report: Callable[[Contents, Path], object] | None = None,
    **options: Any,
) -> tuple[Written, Contents]:
    """Write a dump in a form of `FORMS`; what was written, and what was read.

    path      None: the form's own name in the current folder; "-" gives the text instead of writing it, where the form
              is one file of text
    golden    dump to compare with, for the forms that take one
    write_report  `msdump.viewing.report_file.write_report`, for forms with a report; None leaves it out
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
    has_report = form.has_report and write_report is not None
    contents = Contents(dump, golden, selection, is_job=has_report, **options)
    module = importlib.import_module(f"msdump.analysis.exporting.{form.module}")
    more = (write_report,) if has_report else ()
    return module.export(contents, to, os.fspath(form.path if path is None else path), *more), contents


# -- files: written whole or not at all, and never over something else -------------------------------------------------

_MODE, _DIR_MODE = 0o644, 0o755


def write_text(path: str, text: str, notes: Sequence[str] = ()) -> Written:
    """A file of one text; `-` is standard output.   Raises: ConfigError; WriteError."""
    if path == "-":
        return Written((), tuple(notes), text)
    return write_bytes(path, text.encode("utf-8", "backslashreplace"), notes)


def write_bytes(path: str, data: bytes, notes: Sequence[str] = ()) -> Written:
    """One file; one that is there is replaced.   Raises: ConfigError where a folder has its name; WriteError."""
    target = new_file(path)
    write_file(target, [data], _MODE, replace=True)
    return Written((target,), tuple(notes))


def new_file(path: str) -> Path:
    """The place of a file, whose folder is made.   Raises: ConfigError; WriteError."""
    target = Path(path)
    if path == "-" or target.is_dir():
        kind = "standard output" if path == "-" else "a folder"
        raise ConfigError(f"{path}: expected the path of a file to write, got {kind}. Name a file with -o.")
    make_dirs(target.parent, _DIR_MODE)
    return target


def write_folder(path: str, files: Mapping[str, bytes], notes: Sequence[str] = ()) -> Written:
    """Files by their paths below a folder.   Raises: ConfigError where a file has the folder's name; WriteError."""
    root = Path(path)
    if path == "-" or (os.path.lexists(root) and not root.is_dir()):
        kind = "standard output" if path == "-" else "a file"
        raise ConfigError(f"{path}: expected the path of a folder to write to, got {kind}. Name a folder with -o.")
    written = []
    for name, data in files.items():
        target = root / name
        make_dirs(target.parent, _DIR_MODE)
        write_file(target, [data], _MODE, replace=True)
        written.append(target)
    return Written(tuple(written), tuple(notes))
