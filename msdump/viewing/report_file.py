"""A dump as a file for people without a server: one HTML page, or the verdict as Markdown."""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import html
import importlib.resources
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.analysis.overview.contents import Contents
from msdump.config.environment import format_size
from msdump.errors import ConfigError, FormatError, WriteError
from msdump.formats.atomic import write_file
from msdump.storage.plain import read_start
from msdump.tables.messages import message, translations
from msdump.tables.printable import LINE_ENDS, printable
from msdump.viewing.answer_parts import Answer
from msdump.viewing.pages import Pages, encoded
from msdump.viewing.redaction import Redaction

LARGEST_BYTES = 8 << 20
_DROPPED = ("step/", "compare/", "map", "trend/", "ranks/", "golden/")  # how paths begin that a report can do without
_START = b"<!doctype html>\n<!-- msdump report -->\n"


@dataclass(frozen=True, slots=True)
class ReportFile:
    """What was written.

    path      of the file
    size      in bytes
    left_out  one sentence each about what there was no room for
    overview  the answer of that path, redacted where that was asked for
    """

    path: Path
    size: int
    left_out: tuple[str, ...]
    overview: Answer


def write_report(
    contents: Contents, path: str | os.PathLike[str], *, max_bytes: int = LARGEST_BYTES, is_redacted: bool = False
) -> ReportFile:
    """Write the report; a file that is there is replaced.

    max_bytes    of the whole file. What is too much goes in this order: exponents of healthy tensors, all exponents,
                 then numbers of the golden dump, ranks, trends, statistics of the map and steps, each from the last one
                 on; the overview stays and says so
    is_redacted  leaves out folders, lines of code and the user's and the machine's names
    Raises: as `Contents`; ConfigError when not even the overview has room; WriteError.
    """
    pages = Pages(contents)
    answers = {name: pages.get(name) for name in pages.paths()}
    if is_redacted:
        roots = [dump.path for dump in (contents.dump, contents.golden) if dump is not None]
        redaction = Redaction(answers, roots)
        answers = {name: redaction.of(answer) for name, answer in answers.items()}
    left_out: list[str] = []
    text = _page(answers, left_out)
    for smaller in (_without_healthy_exponents, _without_exponents):
        if len(text) > max_bytes:
            answers, sentence = smaller(answers)
            left_out.append(sentence)
            text = _page(answers, left_out)
    dropped: list[str] = []
    while len(text) > max_bytes:
        last = next((name for name in reversed(answers) if name.startswith(_DROPPED)), None)
        if last is None:
            raise ConfigError(f"--max-size: expected room for {len(text)} bytes at least, got {max_bytes}.")
        del answers[last]
        dropped.append(last)
        names = ", ".join(reversed(dropped[-20:]))
        shown = message("No room for {count} pages: {names}.", count=len(dropped), names=names)
        text = _page(answers, [*left_out, shown])
    if dropped:
        left_out.append(shown)
    _write(Path(path), text)
    return ReportFile(Path(path), len(text), tuple(left_out), answers["overview"])


def _write(path: Path, text: bytes) -> None:
    """A report may take the place of a report, and of nothing else."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if os.path.lexists(path):
            start, _ = read_start(os.fspath(path), len(_START))
            if start != _START:
                raise ConfigError(f"{path}: expected a place for a report, got another file. Choose another name.")
        write_file(path, [text], 0o600, replace=True)
    except FormatError as error:
        raise ConfigError(f"{error} Choose another name.") from error
    except OSError as error:
        raise WriteError(f"{path}: expected to write the report, got: {error.strerror}.") from error


def _without_healthy_exponents(answers: dict[str, Answer]) -> tuple[dict[str, Answer], str]:
    healthy = ("ok", "not written yet", "not measured")
    return _filtered(answers, lambda health: health not in healthy), message(
        "No room for the exponents of healthy tensors."
    )


def _without_exponents(answers: dict[str, Answer]) -> tuple[dict[str, Answer], str]:
    return _filtered(answers, lambda health: False), message("No room for the exponents of any tensor.")


def _filtered(answers: dict[str, Answer], is_kept: Any) -> dict[str, Answer]:
    kept = {}
    for name, answer in answers.items():
        if name.startswith(("step/", "golden/")):
            tensors = answer["tensors"]
            healths = answers[name.replace("golden/", "step/", 1)]["tensors"]["health"]
            pairs = zip(tensors["exponents"], healths, strict=True)
            exponents = [value if is_kept(health) else None for value, health in pairs]
            answer = {**answer, "tensors": {**tensors, "exponents": exponents}}
        kept[name] = answer
    return kept


def _page(answers: dict[str, Answer], left_out: list[str]) -> bytes:
    """The whole file. Answers are base64, which has no letter that HTML knows."""
    words = [*answers["overview"]["words"], *translations(left_out)]
    overview = {**answers["overview"], "left_out": left_out, "words": words}
    values = encoded({**answers, "overview": overview})
    packed = base64.b64encode(gzip.compress(values, 9, mtime=0)).decode()
    body = f'<script type="text/plain" id="answers">{packed}</script>\n'
    return _START + standalone(f"{printable(overview['dump'])} – msdump", body).encode()


def standalone(title: str, body: str) -> str:
    """The page in one text that loads nothing.   body: markup beside the script"""
    script, style = asset("app.js"), asset("app.css")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return (
        f'<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style></head>\n"
        f'<body><div id="app"></div>\n{body}<script>{script}</script></body></html>\n'
    )


def asset(name: str) -> str:
    """The text of a part of the front end."""
    return importlib.resources.files("msdump.viewing").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# -- the verdict as Markdown -------------------------------------------------------------------------------------------

# GitHub takes 65,536 characters in a comment.
LARGEST = 60_000
_MOST_LINES, _MOST_COLUMNS = 40, 100  # what fits into a comment without a scroll bar
_MOST_STEPS, _MOST_FINDINGS, _MOST_TOLD, _MOST_NOTES = 10, 2, 4, 2
_MARKS = {"ok": "✅", "unknown": "❔"}  # kinds of verdicts that are no finding
_ACTIVE = frozenset("\\`*_[]<>|#!@&~")


def markdown(overview: Answer) -> str:
    """Verdict, findings with their lines, the steps that are worst, and files that could not be read.

    overview  the answer of `Pages` for that path
    Edges:    at most _MOST_LINES lines, and LARGEST characters; none is longer than _MOST_COLUMNS but that of
              a name. What there is no room for is counted.
    """
    verdict, found, damaged = overview["verdict"], overview["findings"], overview["damaged"]
    parts = [f"### {_MARKS.get(verdict['kind'], '❌')} {_code(overview['dump'])}"]
    if not found:
        parts.append(_prose(verdict["text"]))
    for finding in found[:_MOST_FINDINGS]:
        line = finding["line"]
        told = _block(finding["text"]).splitlines()
        if line is not None:
            told = [*told[:_MOST_TOLD], *_block(f"{line[0]}:{line[1]}: {line[2]}").splitlines()[:2]]
        parts.append("\n".join([f"**{_prose(finding['title'])}**", "", *told[: _MOST_TOLD + 2]]))
    parts += _some(found, _MOST_FINDINGS, "finding")
    parts += [_prose(note) for note in overview["notes"][:_MOST_NOTES]]
    parts += _some(overview["notes"], _MOST_NOTES, "note")
    if damaged:
        shown = [f"- {_code(file)}: {_prose(reason)}" for file, reason in damaged[:_MOST_NOTES]]
        parts.append("\n".join([f"Damaged files: {len(damaged)}", "", *shown]))
    if overview["disk_bytes"] is not None:
        parts.append(f"{format_size(overview['disk_bytes'])} on disk.")
    used = len("\n\n".join(parts).splitlines())
    parts.append(_steps(overview["steps"], overview["healths"], min(_MOST_STEPS, _MOST_LINES - used - 5)))
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= LARGEST else text[: LARGEST - 40] + "\n\n(cut: too long for a comment)\n"


def _some(values: list[Any], most: int, name: str) -> list[str]:
    """How many are not shown."""
    count = len(values) - most
    return [f"{count} more {name}{'' if count == 1 else 's'}."] if count > 0 else []


def _steps(steps: dict[str, list[Any]], healths: list[str], most: int) -> str:
    """A table of the steps that are worst, in their order."""
    names = ("rank", "graph", "iteration", "operators", "tensors")
    lines = [
        "| rank | graph | iteration | operators | tensors | bytes of tensors | health |",
        "|---|---|---|---|---|---|---|",
    ]
    count = len(steps["rank"])
    worst = sorted(range(count), key=lambda index: healths.index(steps["health"][index]))[: max(0, most)]
    for index in sorted(worst):
        cells = ["-" if steps[name][index] is None else str(steps[name][index]) for name in names]
        lines.append(f"| {' | '.join(cells)} | {format_size(steps['size_bytes'][index])} | {steps['health'][index]} |")
    return "\n".join(lines + ([f"\n{count - len(worst)} more rows are not shown."] if count > len(worst) else []))


def _block(text: str) -> str:
    """A block of code that no run of backticks inside can end."""
    room = _MOST_COLUMNS - 4
    lines = (
        part
        for line in printable(text, LINE_ENDS).splitlines()
        for part in textwrap.wrap(line, room, subsequent_indent="    ", break_on_hyphens=False) or [""]
    )
    return "\n".join(f"    {line}" for line in lines)


def _code(text: str) -> str:
    return f"`{printable(text).replace('`', chr(39))}`"


def _prose(text: str) -> str:
    """Text of strangers that Markdown and HTML must not act on."""
    escaped = "".join(f"&#{ord(letter)};" if letter in _ACTIVE else letter for letter in printable(text))
    return textwrap.fill(escaped, _MOST_COLUMNS - 4, break_long_words=False, break_on_hyphens=False)
