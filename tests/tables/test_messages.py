"""Messages in two languages, and their catalogue: complete, with the same names in braces, nothing in it unused."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.tables.messages import (
    CHINESE,
    COMMA,
    ENGLISH,
    Message,
    catalogue,
    counted,
    joined,
    message,
    messages,
    operand,
    translated,
    translations,
)
from tests.package import PACKAGE

ROOT = Path(__file__).parents[2]
# Functions of `msdump.tables.messages` -> which of their arguments are templates.
MAKERS = {"message": slice(0, 1), "messages": slice(None), "counted": slice(1, 3)}
# Values that are words of the catalogue, never a path or a name of the dump: they may touch letters.
WORDS = {"side", "nan", "inf"}


def test_a_message_is_its_english_text_and_can_be_had_in_chinese() -> None:
    text = message("{count} operators", count=3)
    assert (text, translated(text, ENGLISH), translated(text, CHINESE)) == ("3 operators", "3 operators", "3 个算子")
    assert type(translated(text, ENGLISH)) is str and json.dumps([text]) == '["3 operators"]'
    assert translated("rank", CHINESE) == "rank" and translated(5, CHINESE) == 5


def test_messages_in_messages_and_joined_ones_are_told_in_one_language() -> None:
    place = joined(COMMA, (message("rank {rank}", rank=0), message("iteration {iteration}", iteration=2)))
    text = "  " + message("{operand}: {reason}", operand=operand("input", 1), reason=place) + "!"
    assert text == "  input 1: rank 0, iteration 2!"
    assert translated(text, CHINESE) == "  输入 1：rank 0，迭代 2!"
    assert counted(1, "{count} tensor", "{count} tensors") == "1 tensor"


def test_a_step_says_where_it_is_in_both_languages() -> None:
    from msdump.analysis.steps import StepKey

    assert translated(str(StepKey(0, 1, 2)), CHINESE) == "rank 0，图 1，迭代 2"
    assert str(StepKey(None, None, None)) == "the dump"


@given(st.text(), st.text())
def test_what_a_dump_says_is_no_template(name: str, value: str) -> None:
    text = message("attribute {name}: {value}", name=name, value=value)
    assert text == f"attribute {name}: {value}"
    assert translated(text, CHINESE) == f"属性 {name}：{value}"


@pytest.mark.parametrize("text", [message("{count} operators", count=3), joined(COMMA, messages("a", "b"))])
def test_a_copy_is_as_good(text: Message) -> None:
    for other in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert other == text and other.in_language(CHINESE) == text.in_language(CHINESE)


def test_translations_are_collected_once() -> None:
    text = message("{count} operators", count=3)
    answer = {"headline": [text, "Relu"], "other": (text, None, 1.5), "same": message("NaN")}
    assert translations(answer) == [["3 operators", "3 个算子"]]


# -- the catalogue -----------------------------------------------------------------------------------------------------


@cache
def templates() -> tuple[tuple[str, ast.expr], ...]:
    """Where, and what each call gives as the template of a message."""
    return tuple(_templates())


def _templates() -> Iterator[tuple[str, ast.expr]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        named = [
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "msdump.tables.messages"
            for alias in node.names
        ]
        if file.name == "messages.py" and file.parent.name == "tables":
            named = list(MAKERS)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {*named} & {*MAKERS}:
                for given_text in node.args[MAKERS[node.func.id]]:
                    yield f"{file.relative_to(PACKAGE.parent)}:{node.lineno}", given_text


def names_in(text: str) -> list[tuple[str, str]]:
    return sorted((name, spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None)


def sources_of_the_page() -> str:
    return "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "frontend" / "src").rglob("*.js")))


def test_every_message_is_written_out_and_is_in_the_catalogue() -> None:
    found = list(templates())
    assert [where for where, text in found if not isinstance(text, ast.Constant)] == []
    assert {text.value for _, text in found if isinstance(text, ast.Constant)} - set(catalogue()) == set()


def test_both_languages_have_the_same_names_in_braces() -> None:
    for english, chinese in catalogue().items():
        assert names_in(english) == names_in(chinese), english


def test_every_text_that_the_page_asks_for_by_itself_is_in_the_catalogue() -> None:
    asked = set(re.findall(r'\bsay\("([^"]+)"\)', sources_of_the_page()))
    assert len(asked) > 50 and asked - set(catalogue()) == set()


def test_nothing_in_the_catalogue_is_unused() -> None:
    used = {text.value for _, text in templates() if isinstance(text, ast.Constant)}
    python = "".join(file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py")))
    # Words of answers, such as healths and statuses of tensors, are looked up by the page.
    quoted = python + sources_of_the_page()
    assert [text for text in catalogue() if text not in used and f'"{text}"' not in quoted] == []


def test_what_a_dump_says_touches_no_letter() -> None:
    """What hides paths and names from the public finds them as words."""
    for chinese in catalogue().values():
        for match in re.finditer(r"(\w?)\{(\w+)[^}]*\}(\w?)", chinese):
            assert match[2] in WORDS or not match[1] + match[3], chinese


def test_the_file_is_in_one_form() -> None:
    text = (PACKAGE / "tables" / "chinese.json").read_text(encoding="utf-8")
    pairs = json.loads(text, object_pairs_hook=list)
    assert len(pairs) == len(dict(pairs))
    assert text == json.dumps(dict(pairs), ensure_ascii=False, indent=2) + "\n"
