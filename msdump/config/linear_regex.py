"""Regular expressions in linear time, by simulating all states per letter, where Python's `re` may take for ever.

`re` tries one way after the other. Where a part that repeats can itself be read in several ways, as in `(a+)+`, the
number of ways grows with every letter, and a training that matches such an expression against a name stands still.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_FEW = 3  # repeats of any length, one after the other, whose ways are few enough
_MANY = 8  # times from which a repeat counts as one of any length
_MAX_STATES = 20_000
_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII
_DIGITS, _SPACES = frozenset("0123456789"), frozenset(" \t\n\r\f\v")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") | _DIGITS

Test = Callable[[str], bool]
Condition = Callable[[str, int], bool]


class UnboundedPatternError(ValueError):
    """An expression with a part that only `re` can match, or with too many states."""


def is_costly(pattern: re.Pattern[str]) -> bool:
    """Whether `re` may need a time that grows faster than some power of a name's length."""
    return _cost(_parser.parse(pattern.pattern, pattern.flags))[1] > _FEW


def _cost(part: Any) -> tuple[bool, int]:
    """(whether it can be read in several ways, number of repeats of any length; many when they are in one another)."""
    has_ways, repeats = False, 0
    for op, value in part:
        name = str(op)
        for inner in _inner(name, value):
            inner_ways, inner_repeats = _cost(inner)
            has_ways, repeats = has_ways or inner_ways, repeats + inner_repeats
            if name in _REPEATS and int(value[1]) > 1 and inner_ways:
                repeats += _FEW + 1
        if name in _REPEATS:
            has_ways = has_ways or value[0] != value[1]
            repeats += int(value[1]) >= _MANY
        has_ways = has_ways or name == "BRANCH"
    return has_ways, repeats


def _inner(name: str, value: Any) -> Iterable[Any]:
    """Parts that a part is made of."""
    if name in _REPEATS:
        return [value[2]]
    if name == "BRANCH":
        return list(value[1])
    if name == "SUBPATTERN":
        return [value[3]]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if name == "ATOMIC_GROUP":
        return [value]
    if name == "GROUPREF_EXISTS":
        return [part for part in value[1:] if part is not None]
    return []


@dataclass(frozen=True, slots=True)
class _State:
    """Reads one letter, holds under a condition, or only leads on; `following` are the states behind it."""

    following: tuple[int, ...]
    test: Test | None = None
    condition: Condition | None = None


class LinearPattern:
    """An expression as states; any thread may match.

    Raises: UnboundedPatternError for back references, atomic groups and possessive repeats, and for what would need
            too many states.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._states: list[_State] = []
        self._end = self._add(_State(()))
        self._start = self._sequence(_parser.parse(pattern.pattern, pattern.flags), pattern.flags, self._end)

    def fullmatch(self, text: str) -> bool:
        return self._matches(text, self._start, self._end, 0, len(text))

    def search(self, text: str) -> bool:
        return any(self._matches(text, self._start, self._end, first, None) for first in range(len(text) + 1))

    def _matches(self, text: str, start: int, end: int, first: int, last: int | None) -> bool:
        """Whether letters from `first` on lead to another state, at position `last` or, with None, anywhere."""
        states = self._closure(text, first, [start])
        for position in range(first, len(text) if last is None else last):
            if last is None and end in states:
                return True
            letter = text[position]
            moved = [
                target
                for entry in (self._states[state] for state in states)
                if entry.test is not None and entry.test(letter)
                for target in entry.following
            ]
            states = self._closure(text, position + 1, moved)
            if not states:
                return False
        return end in states

    def _closure(self, text: str, position: int, states: list[int]) -> set[int]:
        """The states, and all that they lead to without a letter."""
        reached: set[int] = set()
        while states:
            state = states.pop()
            if state in reached:
                continue
            entry = self._states[state]
            if entry.condition is not None and not entry.condition(text, position):
                continue
            reached.add(state)
            if entry.test is None:
                states += entry.following
        return reached

    # -- building, from the last part to the first ----------------------------------------------------------------

    def _add(self, state: _State) -> int:
        if len(self._states) >= _MAX_STATES:
            raise UnboundedPatternError("its repeats would need too many states")
        self._states.append(state)
        return len(self._states) - 1

    def _sequence(self, part: Any, flags: int, after: int) -> int:
        """First state of a part whose last one leads to `after`."""
        for op, value in reversed(list(part)):
            after = self._part(str(op), value, flags, after)
        return after

    def _part(self, name: str, value: Any, flags: int, after: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._add(_State((after,), test=_test_of(name, value, flags)))
        if name == "AT":
            return self._add(_State((after,), condition=_position_condition(str(value), flags)))
        if name == "BRANCH":
            return self._add(_State(tuple(self._sequence(part, flags, after) for part in value[1])))
        if name == "SUBPATTERN":
            added, removed = int(value[1]), int(value[2])
            if (added | removed) & ~int(_FLAGS):
                raise UnboundedPatternError("it changes the alphabet")
            return self._sequence(value[3], (flags | added) & ~removed, after)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(int(value[0]), value[1], value[2], flags, after)
        if name in ("ASSERT", "ASSERT_NOT"):
            return self._look(name == "ASSERT", value[0], value[1], flags, after)
        if name == "FAILURE":
            return self._add(_State((after,), condition=lambda _, __: False))
        raise UnboundedPatternError(f"it holds {name.lower().replace('_', ' ')}")

    def _repeat(self, least: int, most: Any, part: Any, flags: int, after: int) -> int:
        if most is _parser.MAXREPEAT:
            loop = self._add(_State((after,)))
            body = self._sequence(part, flags, loop)
            self._states[loop] = _State((body, after))
            start = loop
        else:
            start = after
            for _ in range(int(most) - least):
                start = self._add(_State((self._sequence(part, flags, start), after)))
        for _ in range(least):
            start = self._sequence(part, flags, start)
        return start

    def _look(self, is_wanted: bool, direction: int, part: Any, flags: int, after: int) -> int:
        end = self._add(_State(()))
        start = self._sequence(part, flags, end)
        width = part.getwidth()[0] if direction < 0 else 0

        def condition(text: str, position: int) -> bool:
            if direction < 0:
                return (position >= width and self._matches(text, start, end, position - width, position)) is is_wanted
            return self._matches(text, start, end, position, None) is is_wanted

        return self._add(_State((after,), condition=condition))


def _test_of(name: str, value: Any, flags: int) -> Test:
    if name == "ANY":
        return (lambda _: True) if flags & re.DOTALL else (lambda letter: letter != "\n")
    if name == "IN":
        items = [(str(op), item) for op, item in value]
        is_negated = bool(items) and items[0][0] == "NEGATE"
        tests = [_item_test(op, item) for op, item in items[is_negated:]]
    else:
        is_negated = name == "NOT_LITERAL"
        tests = [_item_test("LITERAL", value)]
    if not flags & re.IGNORECASE:
        return lambda letter: any(test(letter) for test in tests) is not is_negated

    def test_any_case(letter: str) -> bool:
        forms = {letter, letter.lower(), letter.upper()} if letter.isascii() else {letter}
        return any(test(form) for test in tests for form in forms) is not is_negated

    return test_any_case


def _item_test(op: str, item: Any) -> Test:
    if op == "LITERAL":
        return chr(item).__eq__
    if op == "RANGE":
        return lambda letter: int(item[0]) <= ord(letter) <= int(item[1])
    kind = str(item).removeprefix("CATEGORY_")
    letters = {"DIGIT": _DIGITS, "SPACE": _SPACES, "WORD": _WORD}[kind.removeprefix("NOT_")]
    return letters.__contains__ if not kind.startswith("NOT_") else (lambda letter: letter not in letters)


def _position_condition(name: str, flags: int) -> Condition:
    if name == "AT_BEGINNING" and flags & re.MULTILINE:
        return lambda text, position: position == 0 or text[position - 1] == "\n"
    if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return lambda _, position: position == 0
    if name == "AT_END_STRING":
        return lambda text, position: position == len(text)
    if name == "AT_END":
        return lambda text, position: (
            position == len(text)
            or (text[position] == "\n" and (bool(flags & re.MULTILINE) or position == len(text) - 1))
        )
    is_wanted = name == "AT_BOUNDARY"

    def boundary(text: str, position: int) -> bool:
        before = position > 0 and text[position - 1] in _WORD
        behind = position < len(text) and text[position] in _WORD
        # As `re` has it before Python 3.14: an empty text has not even no boundary.
        return bool(text) and (before != behind) is is_wanted

    return boundary
