"""Tables for notebooks, which show what `_repr_html_` gives: bounded, without a script, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice

from msdump.tables.printable import printable

MAX_ROWS = 20


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], row_count: int) -> str:
    """The first rows of a table; None is shown as –, a float with five digits.

    title      a sentence above it
    row_count  rows in all; what is not shown is said below
    """
    shown = list(islice(rows, MAX_ROWS))
    parts = [f"<p>{_text(title)}</p>"] if title else []
    head = "".join(f"<th>{_text(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{_text(_cell(cell))}</td>' for cell in row)}</tr>" for row in shown)
    parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    if row_count > len(shown):
        parts.append(f"<p>… {row_count - len(shown)} more of {row_count}</p>")
    return "\n".join(parts)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _text(text: str) -> str:
    return html.escape(printable(text, "\n"))
