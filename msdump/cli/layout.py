"""Text within a width: measured in columns of a terminal, wrapped, shortened in the middle, set in tables.

Only plain strings come in and go out; `msdump.cli.printing` knows streams, escapes and colours.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

DEFAULT_WIDTH = 80
_NARROWEST = 20  # below that nothing can be set; lines are as long as they are
_GAP = "  "
_SHRUNK = 14  # a text of a table keeps so many columns of its own
_ALIKE = 3  # rows that say the same before it is said once
_WRAPPED = 24  # and one that takes several lines
_WIDE = frozenset("WF")
_BLANK = frozenset({"", "-"})
# Chinese is written without blanks: a line may end behind each letter, but for signs that end or begin a clause.
_HAN = "\u3400-\u9fff\uf900-\ufaff"
_CLOSING, _OPENING = "\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f", "\uff08"
_WORDS = re.compile(
    rf" +|[{_OPENING}]*[{_HAN}][{_CLOSING}]*|[{_OPENING}]*[^ {_HAN}{_OPENING}{_CLOSING}]+[{_CLOSING}]*"
    rf"|[{_OPENING}{_CLOSING}]+"
)


# -- measures ----------------------------------------------------------------------------------------------------------


def is_width_told() -> bool:
    """Whether COLUMNS says how wide lines may be, also for what is no terminal."""
    return "COLUMNS" in os.environ


def terminal_width(*streams: Any) -> int:
    """Columns of COLUMNS, else of the first of the streams that is a terminal, else `DEFAULT_WIDTH`."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return max(int(told), _NARROWEST)
    for stream in streams:
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (AttributeError, OSError, ValueError):
            continue
        if columns > 0:
            return max(columns, _NARROWEST)
    return DEFAULT_WIDTH


def text_width(text: str) -> int:
    """Columns that a terminal takes for a text: two for a wide letter, none for a mark on the letter before it."""
    if text.isascii():
        return len(text)
    return sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def _padded(text: str, width: int, is_right: bool) -> str:
    blanks = " " * (width - text_width(text))
    return blanks + text if is_right else text + blanks


def shortened(text: str, width: int, ellipsis: str = "...") -> str:
    """The text; where it is wider than `width`, its two ends around an ellipsis: names differ at their ends."""
    if text_width(text) <= width:
        return text
    rest = width - text_width(ellipsis)
    if rest < 2:
        return _beginning(text, width)
    tail = _beginning(text[::-1], (rest + 1) // 2)[::-1]
    return _beginning(text, rest - text_width(tail)) + ellipsis + tail


def _beginning(text: str, width: int) -> str:
    """As much of a text as fits."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for place, letter in enumerate(text):
        taken += _letter_width(letter)
        if taken > width:
            return text[:place]
    return text


# -- wrapping ----------------------------------------------------------------------------------------------------------


def wrapped(line: str, width: int, indent: int | None = None) -> list[str]:
    """One line as lines of at most `width` columns.

    indent  blanks before the second and all later ones; None: four more than the line itself has

    Edges:  a word that is wider than a line is parted, after a "/" or a "." of it where there is one.
    """
    if text_width(line) <= width:
        return [line]
    own = len(line) - len(line.lstrip(" "))
    indent = min(own + 4 if indent is None else indent, width // 2)
    lines, current = [], " " * min(own, width // 2)
    for word in _WORDS.findall(line[own:]):
        if word[0] == " ":
            current += word
            continue
        while text_width(current) + text_width(word) > width:
            room = width - (text_width(current) if current.strip() else len(current))
            if current.strip():
                lines.append(current.rstrip())
                current, room = " " * indent, width - indent
            if text_width(word) > room:
                piece = _piece(word, room)
                lines.append(current + piece)
                current, word = " " * indent, word[len(piece) :]
        current += word
    return [*lines, current] if current.strip() else lines


def _piece(word: str, room: int) -> str:
    """The first part of a word that is too wide: up to a sign at which names have joints."""
    piece = _beginning(word, room) or word[0]
    joints = (piece.rfind(sign) + 1 for sign in "/.")
    return piece[: next((joint for joint in joints if joint >= len(piece) // 3), len(piece))]


def filled(text: str, width: int) -> str:
    """Paragraphs of a help text within a width.

    Lines that are indented, or have a gap of two blanks in them, are lines of a list: each is wrapped by itself, below
    what stands behind the gap. Other lines that follow each other are one paragraph.
    """
    lines: list[str] = []
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_listed = line.startswith(" ") or "  " in line.strip()
        if line.strip() and not is_listed:
            paragraph.append(line.strip())
            continue
        if paragraph:
            lines += wrapped(" ".join(paragraph), width, 0)
            paragraph = []
        gap = re.search(r"\S( {2,})\S", line)
        lines += wrapped(line.rstrip(), width, gap.end(1) if gap else None) if line.strip() else [""]
    return "\n".join(lines).strip("\n")


# -- tables ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of a table.

    row  number of the row that it belongs to; None for titles and what is said of all rows
    end  of the cell that stands first in it, for its colour
    """

    text: str
    row: int | None = None
    end: int = 0


@dataclass(slots=True)
class _Grid:
    titles: list[str]
    columns: list[list[str]]
    numbers: set[int]
    wraps: set[int]
    heads: int = 2
    notes: list[str] = field(default_factory=list)

    @property
    def has_titles(self) -> bool:
        return any(self.titles)

    def natural(self, column: int) -> int:
        cells = [self.titles[column], *self.columns[column]]
        return max(map(text_width, cells))


def table_lines(
    titles: Sequence[str],
    columns: Sequence[Sequence[str]],
    width: int | None,
    *,
    numbers: Collection[int] = (),
    wraps: Collection[int] = (),
    keeps: Collection[int] = (0, 1),
    ellipsis: str = "...",
    in_each: str = "in each row: {columns}",
) -> list[TableLine]:
    """A table within a width.

    A column that has nothing in it goes; one that says the same in each row is said once above. Where the rest is too
    wide, texts are shortened in the middle, those of `wraps` take several lines; where that is not enough, each row
    becomes a few lines of "title value".

    titles   of the columns; none: labels and texts
    columns  cells, a sequence for each column
    width    None: as wide as it is
    numbers  columns that are aligned on their right, and never shortened
    keeps    columns that stay whatever is in them: the verdict, the name
    in_each  line about columns that say the same in each row
    """
    if not columns or not columns[0]:
        return [TableLine(_GAP.join(titles))] if titles else []
    if not titles:
        return _labelled_lines(columns, width)
    heads = min(max((place + 1 for place in range(len(titles)) if set(range(place + 1)) <= set(keeps)), default=1), 3)
    grid = _Grid(list(titles), [list(column) for column in columns], set(numbers), set(wraps), heads)
    if width is not None:
        grid = _without_constants(grid, set(keeps))
    widths = [grid.natural(column) for column in range(len(grid.columns))]
    room = None if width is None else width - len(_GAP) * (len(widths) - 1)
    if room is not None and sum(widths) > room:
        widths = _shrunk(grid, widths, room)
        if sum(widths) > room:
            assert width is not None
            return [*_notes(grid, width, in_each), *_sideways(grid, width, ellipsis)]
    return [*_notes(grid, width, in_each), *_aligned(grid, widths, ellipsis)]


def _notes(grid: _Grid, width: int | None, in_each: str) -> list[TableLine]:
    if not grid.notes:
        return []
    line = in_each.format(columns=", ".join(grid.notes))
    return [TableLine(text) for text in (wrapped(line, width) if width else [line])]


def _without_constants(grid: _Grid, keeps: set[int]) -> _Grid:
    kept, notes = [], []
    for place, (title, column) in enumerate(zip(grid.titles, grid.columns, strict=True)):
        is_same = column.count(column[0]) == len(column)
        if place not in keeps and is_same and column[0] in _BLANK:
            continue
        if place not in keeps and is_same and len(column) >= _ALIKE:
            notes.append(f"{title} {column[0]}".strip())
            continue
        kept.append(place)
    new = {place: number for number, place in enumerate(kept)}
    return _Grid(
        [grid.titles[place] for place in kept],
        [grid.columns[place] for place in kept],
        {new[place] for place in grid.numbers if place in new},
        {new[place] for place in grid.wraps if place in new},
        grid.heads,
        notes,
    )


def _shrunk(grid: _Grid, widths: list[int], room: int) -> list[int]:
    """Widths that fit, taken from the widest texts first; wider than the room where that is not possible."""
    widths = list(widths)
    least = {
        column: min(widths[column], max(text_width(grid.titles[column]), _WRAPPED if column in grid.wraps else _SHRUNK))
        for column in range(len(widths))
        if column not in grid.numbers and column != 0
    }
    able = {column for column, lowest in least.items() if widths[column] > lowest}
    for _ in range(sum(widths) - room):
        if not able:
            break
        widest = max(able, key=lambda column: (widths[column], column))
        widths[widest] -= 1
        if widths[widest] <= least[widest]:
            able.discard(widest)
    return widths


def _aligned(grid: _Grid, widths: list[int], ellipsis: str) -> list[TableLine]:
    lines = []
    if grid.has_titles:
        cells = [
            _padded(title, width, column in grid.numbers)
            for column, (title, width) in enumerate(zip(grid.titles, widths, strict=True))
        ]
        lines.append(TableLine(_GAP.join(cells).rstrip()))
    for number, row in enumerate(zip(*grid.columns, strict=True)):
        parts = [
            wrapped(cell, width, 0) if column in grid.wraps else [shortened(cell, width, ellipsis)]
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for height in range(max(map(len, parts))):
            cells = [
                _padded(part[height] if height < len(part) else "", width, column in grid.numbers)
                for column, (part, width) in enumerate(zip(parts, widths, strict=True))
            ]
            lines.append(TableLine(_GAP.join(cells).rstrip(), number, len(cells[0].rstrip()) if height == 0 else 0))
    return lines


def _sideways(grid: _Grid, width: int, ellipsis: str) -> list[TableLine]:
    """Each row as a line with the cells that name it, and lines of "title value" below."""
    lines = []
    widths = [grid.natural(column) for column in range(grid.heads)]
    spare = width - len(_GAP) * (len(widths) - 1) - sum(widths)
    if spare < 0 and len(widths) > 1:
        # The name is the longest of them, and has a middle to lose.
        widths[1] = max(widths[1] + spare, min(widths[1], _SHRUNK))
    for number, row in enumerate(zip(*grid.columns, strict=True)):
        cells = [_padded(shortened(cell, size, ellipsis), size, False) for cell, size in zip(row, widths, strict=False)]
        head = _GAP.join(cells).rstrip()
        lines += [
            TableLine(text, number, 0 if place else len(cells[0].rstrip()))
            for place, text in enumerate(wrapped(head, width, 2))
        ]
        current = ""
        for title, cell in zip(grid.titles[grid.heads :], row[grid.heads :], strict=True):
            pair = f"{title} {cell}".strip()
            if cell in _BLANK:
                continue
            if current and 4 + text_width(current) + len(_GAP) + text_width(pair) > width:
                lines.append(TableLine(f"    {current}", number))
                current = ""
            if 4 + text_width(pair) > width:
                lines += [TableLine(text, number) for text in wrapped(f"    {pair}", width, 6)]
            else:
                current += (_GAP if current else "") + pair
        if current:
            lines.append(TableLine(f"    {current}", number))
    return lines


def _labelled_lines(columns: Sequence[Sequence[str]], width: int | None) -> list[TableLine]:
    """Labels and texts, the texts wrapped beside their labels."""
    *labels, texts = columns
    heads = [_GAP.join(row) for row in zip(*labels, strict=True)] if labels else [""] * len(texts)
    if len(labels) > 1:
        widths = [max(map(text_width, column)) for column in labels]
        rows = zip(*labels, strict=True)
        heads = [_GAP.join(_padded(c, w, False) for c, w in zip(row, widths, strict=True)) for row in rows]
    first = max(map(text_width, heads))
    lines = []
    for number, (head, text) in enumerate(zip(heads, texts, strict=True)):
        left = _padded(head, first, False) + _GAP if labels else ""
        for piece in text.split("\n") or [""]:
            line = left + piece
            indent = len(left) if width is not None and len(left) < width // 2 else 4
            pieces = [line] if width is None else wrapped(line, width, indent)
            lines += [TableLine(one.rstrip(), number, len(head)) for one in pieces]
            left = " " * text_width(left)
    return lines
