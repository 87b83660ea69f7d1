"""`common_dump_settings.kernels`: one element as text -> a Selector that knows which operators it means."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from msdump.config.linear_regex import LinearPattern, UnboundedPatternError, is_costly
from msdump.errors import ConfigError, did_you_mean

WHERE = "common_dump_settings.kernels"
_REGEX_PREFIX = "name-regex("
# ECMAScript knows the POSIX classes inside brackets, Python's `re` does not.
_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "d": "0-9",
    "digit": "0-9",
    "lower": "a-z",
    "s": r"\s",
    "space": r"\s",
    "upper": "A-Z",
    "w": r"\w",
    "xdigit": "0-9A-Fa-f",
}
# Suggestions compare texts one by one; on huge graphs the first names are enough.
_COMPARED_NAMES = 2000


@dataclass(frozen=True)
class FullNameSelector:
    """One operator, by its full name with scope."""

    text: str

    def matches(self, full_name: str) -> bool:
        return full_name == self.text


@dataclass(frozen=True)
class OpTypeSelector:
    """Every operator whose type contains the text; case does not matter, "" is in every type."""

    text: str

    @cached_property
    def _lower(self) -> str:
        return self.text.lower()

    def matches(self, full_name: str) -> bool:
        return self._lower in op_type_of(full_name).lower()


@dataclass(frozen=True)
class NameRegexSelector:
    """Every operator whose whole full name matches an expression.

    matcher  of the pattern: itself, or a form with bounded time where its own may grow without
    """

    text: str
    pattern: re.Pattern[str]
    matcher: re.Pattern[str] | LinearPattern

    def matches(self, full_name: str) -> bool:
        return bool(self.matcher.fullmatch(full_name))


Selector = FullNameSelector | OpTypeSelector | NameRegexSelector


def op_type_of(full_name: str) -> str:
    """What an op type is searched in: the last component, cut at its last "-".

    Source: MindSpore dump guide, `kernels`; a parameter's name has no "-" as a rule and stays whole.
    """
    last = full_name.rpartition("/")[2]
    stem, dash, _ = last.rpartition("-")
    return stem if dash else last


def parse_selector(text: str, index: int = 0) -> Selector:
    """Read one element of `kernels`.   Raises: ConfigError naming kernels[index] for a bad expression."""
    if text.startswith(_REGEX_PREFIX):
        return _parse_regex(text, index)
    if "/" in text or "-op" in text:
        return FullNameSelector(text)
    return OpTypeSelector(text)


def parse_selectors(texts: Sequence[str]) -> tuple[Selector, ...]:
    return tuple(parse_selector(text, index) for index, text in enumerate(texts))


def _parse_regex(text: str, index: int) -> NameRegexSelector:
    where = f"{WHERE}[{index}]"
    if not text.endswith(")"):
        raise ConfigError(f'{where}: expected name-regex(EXPRESSION), got "{text}". Add the closing ")" at the end.')
    expression = text[len(_REGEX_PREFIX) : -1]
    translated = re.sub(
        r"\[:(\w+):\]", lambda match: _POSIX_CLASSES.get(match.group(1), match.group(0)), expression, flags=re.ASCII
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of sets that it may read differently one day
            pattern = re.compile(translated, re.ASCII)
            matcher = LinearPattern(pattern) if is_costly(pattern) else pattern
    except UnboundedPatternError as error:
        raise ConfigError(
            f'{where}: expected a regular expression that is matched in bounded time, got "{expression}": a part that '
            f"repeats can be read in several ways, and {error}. Repeat less, or name the operators in several elements."
        ) from error
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(
            f'{where}: expected a regular expression inside name-regex(...), got "{expression}". {error}. '
            f'In JSON a backslash is written twice: "name-regex(.*Conv2D-op\\\\d+)".'
        ) from error
    return NameRegexSelector(text, pattern, matcher)


def advice(selector: Selector, full_names: Sequence[str]) -> str:
    """What to write instead of a selector that matches none of the names; "" when nothing is near."""
    if isinstance(selector, FullNameSelector):
        return _full_name_advice(selector.text, full_names)
    if isinstance(selector, OpTypeSelector):
        return did_you_mean(selector.text, sorted({op_type_of(name) for name in full_names}))
    similar = next((name for name in full_names if selector.matcher.search(name)), None)
    if similar is None:
        return ""
    inner = selector.text[len(_REGEX_PREFIX) : -1]
    return f'The expression must match the whole name, such as "{similar}"; write "name-regex(.*{inner}.*)".'


def _full_name_advice(text: str, full_names: Sequence[str]) -> str:
    scope = text.rstrip("/") + "/"
    inside = sum(name.startswith(scope) for name in full_names)
    if inside:
        operators = "operator" if inside == 1 else "operators"
        return f'It is the scope of {inside} {operators}; write "name-regex({_escaped(scope)}.*)" to select them.'
    return did_you_mean(text, _likely_names(text, full_names))


def _likely_names(text: str, full_names: Sequence[str]) -> Iterable[str]:
    """Names of the same op type first: a changed number at the end is the usual mistake."""
    op_type = op_type_of(text).lower()
    same_type = [name for name in full_names if op_type_of(name).lower() == op_type]
    return (same_type or full_names)[:_COMPARED_NAMES]


def _escaped(scope: str) -> str:
    """Only what a scope can hold and an expression reads otherwise; "-" outside brackets means itself."""
    return re.sub(r"([.()\[\]{}*+?^$|\\])", r"\\\1", scope)
