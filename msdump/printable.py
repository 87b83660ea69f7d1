"""Text of strangers that is to be read by a person: nothing in it acts on a terminal or hides what it is."""

from __future__ import annotations

import unicodedata

LINE_ENDS = "\n\t"


def printable(text: str, keeps: str = "") -> str:
    """The text with every character written out that a terminal may act on, or cannot show.

    keeps   characters that stay all the same, such as `LINE_ENDS` in a message of several lines
    Example: "\\x1b" and "\\u202e" as six and eight letters; a byte that is not UTF-8 as "\\xff".
    """
    if is_printable(text, keeps):
        return text
    return "".join(letter if letter.isprintable() or letter in keeps else _written_out(letter) for letter in text)


def is_printable(text: str, keeps: str = "") -> bool:
    """Whether every character is one that a terminal shows, or one of `keeps`."""
    for letter in keeps:
        text = text.replace(letter, "")
    return text.isprintable()


def _written_out(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":  # how Python has the byte of a file name that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter if unicodedata.category(letter) == "Zs" else ascii(letter)[1:-1]
