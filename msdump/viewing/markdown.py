"""The verdict on a dump as Markdown, short enough for a comment on GitHub or the summary of a job."""

from __future__ import annotations

from typing import Any

from msdump.config.environment import format_size
from msdump.tables.printable import LINE_ENDS, printable
from msdump.viewing.pages import Answer

# GitHub takes 65,536 characters in a comment.
LARGEST = 60_000
_MOST_STEPS = 50
_ACTIVE = frozenset("\\`*_[]<>|#!@&~")


def markdown(overview: Answer) -> str:
    """Verdict, findings with their lines, steps, and files that could not be read; at most LARGEST characters.

    overview  the answer of `Pages` for that path
    """
    verdict = overview["verdict"]
    parts = [f"### {'✅' if verdict['kind'] == 'ok' else '❌'} {_code(overview['dump'])}", _prose(verdict["text"])]
    for finding in overview["findings"]:
        line = finding["line"]
        parts.append(f"**{_prose(finding['title'])}**\n\n{_block(finding['text'])}")
        if line is not None:
            parts.append(_block(f"{line[0]}:{line[1]}: {line[2]}"))
    parts.append(_steps(overview["steps"]))
    damaged = overview["damaged"]
    if damaged:
        shown = [f"- {_code(file)}: {_prose(reason)}" for file, reason in damaged[:20]]
        parts.append(f"{len(damaged)} files are damaged:\n\n" + "\n".join(shown))
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= LARGEST else text[: LARGEST - 40] + "\n\n(cut: too long for a comment)\n"


def _steps(steps: dict[str, list[Any]]) -> str:
    names = ("rank", "graph", "iteration", "operators", "tensors")
    lines = ["| rank | graph | iteration | operators | tensors | bytes | health |", "|---|---|---|---|---|---|---|"]
    count = len(steps["rank"])
    for index in range(min(count, _MOST_STEPS)):
        cells = ["-" if steps[name][index] is None else str(steps[name][index]) for name in names]
        lines.append(f"| {' | '.join(cells)} | {format_size(steps['size_bytes'][index])} | {steps['health'][index]} |")
    if count > _MOST_STEPS:
        lines.append(f"\n{count - _MOST_STEPS} more steps are not shown.")
    return "\n".join(lines)


def _block(text: str) -> str:
    """A block of code that no run of backticks inside can end."""
    return "\n".join(f"    {line}" for line in printable(text, LINE_ENDS).splitlines())


def _code(text: str) -> str:
    return f"`{printable(text).replace('`', chr(39))}`"


def _prose(text: str) -> str:
    """Escape untrusted text for Markdown and HTML."""
    return "".join(f"&#{ord(letter)};" if letter in _ACTIVE else letter for letter in printable(text))
