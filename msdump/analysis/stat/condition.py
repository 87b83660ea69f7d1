"""A condition on the rows of a table: a text such as `nan>0` or `op_type==MatMul and max>1e4`.

condition = parse_condition("nan > 0 or not l2norm < 1e4", COLUMNS)
[row for row in rows if condition(row)]
"""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msdump.errors import ConfigError, did_you_mean
from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT, Column

Condition = Callable[[Mapping[str, Any]], bool]
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda own, value: own == value or (own != own and value != value),  # NaN is nan here
    "!=": lambda own, value: not _SIGNS["=="](own, value),
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "~": fnmatch.fnmatchcase,
}  # fmt: skip
# Of a glob, whose search takes longer than its text grows; and of a condition, which messages repeat.
MOST_GLOB, MOST_CONDITION = 1000, 10_000
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_NUMBER = ("a number", "== != < <= > >=", lambda text: int(text) if text.lstrip("+-").isdecimal() else float(text))
# What a value of a column is called, the signs that it is compared with, and how it is read.
_KINDS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    INTEGER: _NUMBER, NUMBER: _NUMBER, FLAG: ("true or false", "== !=", lambda text: _FLAGS[text.lower()]),
    TEXT: ("a text", "== != ~", str), SIZES: ("a shape", "== != ~", str),
}  # fmt: skip
_PART = re.compile(
    r"""\s*(?:(?P<word>and\b|or\b|not\b|[()])|(?P<column>[^\s()<>=!~"']+)\s*
    (?:(?P<sign>[=!<>]=|[<>=~])\s*(?P<value>"[^"]*"|'[^']*'|(?!(?:and|or|not)(?:[\s()]|$))[^\s()<>=!~"']+)?)?)""",
    re.VERBOSE,
)


def parse_condition(text: str, columns: Sequence[Column]) -> Condition:
    """The condition as a function of a row by column names.

    Edges:   what is not known (None) meets no comparison but `!=`; NaN of a NUMBER is not below, above or equal to
             anything but `nan`; texts of shapes are sizes with `x` ("2x3"); `=` means `==`.
    Raises:  ConfigError that says at which character, and what is allowed there.
    """

    if len(text) > MOST_CONDITION:
        raise ConfigError(f"--where: expected at most {MOST_CONDITION} characters, got {len(text)}. Shorten it.")

    def wrong(place: int, expected: str, hint: str = "") -> ConfigError:
        rest = text[place:].lstrip()
        part = _PART.match(rest)
        got = f'"{part["word"] or part["column"]}"' if part else repr(rest[:1]) if rest else "the end"
        where = f'--where "{text}", character {len(text) - len(rest) + 1}: expected {expected}, got {got}.'
        allowed = f"Allowed: COLUMN SIGN VALUE, joined by and, or, not and ( ); signs: {' '.join(_SIGNS)} (a glob)."
        return ConfigError(" ".join(filter(None, (where, hint, allowed, "Such as: op_type==MatMul and max>1e4."))))

    def comparison(part: re.Match[str]) -> Condition:
        name, sign, value = part["column"], "==" if part["sign"] == "=" else part["sign"], part["value"]
        if name not in kinds:
            raise wrong(part.start("column"), f"a column ({', '.join(kinds)})", did_you_mean(name, kinds))
        what, signs, read = _KINDS[kinds[name]]
        if sign not in signs.split():
            raise wrong(max(part.start("sign"), part.end("column")), f"one of {signs} for {name}, which is {what}")
        if value is None:
            raise wrong(part.end("sign"), "a value")
        if sign == "~" and len(value) > MOST_GLOB:
            raise ConfigError(
                f"--where, character {part.start('value') + 1}: expected a glob of at most {MOST_GLOB} characters, got "
                f"{len(value)}. Shorten it, or compare with ==."
            )
        try:
            wanted = read(value[1:-1] if value[0] in "\"'" else value)
        except (ValueError, KeyError):
            raise wrong(part.start("value"), f"{what} for {name}") from None

        def holds(row: Mapping[str, Any]) -> bool:
            own = as_text(row[name]) if isinstance(wanted, str) and row[name] is not None else row[name]
            return sign == "!=" if own is None else _SIGNS[sign](own, wanted)

        return holds

    kinds = {column.name: column.kind for column in columns}
    tests: list[Condition] = []
    words: list[str] = []  # the condition, as Python joins the tests: nothing of the text itself is among them
    place, depth, is_whole = 0, 0, False
    while text[place:].strip() or depth or not is_whole:
        part = _PART.match(text, place)
        word = part["word"] if part else ""
        if part is None or is_whole != (word in ("and", "or", ")")) or (word == ")" and not depth):
            raise wrong(place, ("and, or, or )" if depth else "and, or, or the end") if is_whole else "a column")
        if word is None:
            tests.append(comparison(part))
        words.append(word or f"tests[{len(tests) - 1}](row)")
        place, depth, is_whole = part.end(), depth + (word == "(") - (word == ")"), word in (None, ")")
    try:
        return eval("lambda row: " + " ".join(words), {"__builtins__": {}, "tests": tests})  # type: ignore[no-any-return]
    except (SyntaxError, MemoryError, RecursionError):
        raise wrong(len(text), "fewer parentheses and words, of which Python takes some hundreds") from None


def as_text(value: Any) -> str:
    """A value of a TEXT or SIZES column; sizes as "2x3", those of a scalar as "()"."""
    return "x".join(map(str, value)) or "()" if isinstance(value, (list, tuple)) else str(value)
