"""Conditions mean what they say for any row, and any other text is refused with its place."""

from __future__ import annotations

import fnmatch
import math
import operator
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis.stat.condition import parse_condition
from msdump.cli.main import main
from msdump.errors import ConfigError
from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT, Column
from tests.analysis.small_dump import floats, write_dump

COLUMNS = tuple(
    Column(name, kind, "")
    for name, kind in (("n", INTEGER), ("x", NUMBER), ("name", TEXT), ("flag", FLAG), ("shape", SIZES))
)
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
NUMBERS = st.floats(-4, 4).map(lambda value: round(value, 1)) | st.sampled_from([math.nan, math.inf, -math.inf])
NAMES = st.text("ab-/*", min_size=1, max_size=3)
ROWS = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-3, 3),
        "x": st.none() | NUMBERS,
        "name": st.none() | NAMES,
        "flag": st.none() | st.booleans(),
        "shape": st.lists(st.integers(0, 3), max_size=2).map(tuple),
    }
)


def comparisons():
    def number(name, sign, value):
        def holds(row):
            own = row[name]
            is_nan = isinstance(own, float) and math.isnan(own)
            if sign == "==":
                return is_nan if math.isnan(value) else own is not None and own == value
            return own is not None and SIGNS[sign](own, value)

        return f"{name}{sign}{value}", holds

    def text(value):
        return f'name ~ "{value}"', lambda row: row["name"] is not None and fnmatch.fnmatchcase(row["name"], value)

    def flag(value):
        return f"flag = {str(value).lower()}", lambda row: row["flag"] is value

    def shape(sizes):
        written = "x".join(map(str, sizes)) or "()"
        return f"shape == '{written}'", lambda row: row["shape"] == sizes

    return st.one_of(
        st.builds(number, st.sampled_from(["n", "x"]), st.sampled_from(list(SIGNS)), NUMBERS),
        st.builds(text, NAMES),
        st.builds(flag, st.booleans()),
        st.builds(shape, st.lists(st.integers(0, 3), max_size=2).map(tuple)),
    )


def joined(inner):
    def pair(word, one, other):
        join = all if word == "and" else any
        return f"({one[0]}) {word} ({other[0]})", lambda row: join((one[1](row), other[1](row)))

    negated = inner.map(lambda one: (f"not ({one[0]})", lambda row: not one[1](row)))
    return st.builds(pair, st.sampled_from(["and", "or"]), inner, inner) | negated


@given(st.recursive(comparisons(), joined, max_leaves=5), ROWS)
def test_a_condition_means_what_it_says(condition, row):
    text, holds = condition
    assert parse_condition(text, COLUMNS)(row) == holds(row)


@pytest.mark.parametrize(
    ("text", "row", "holds"),
    [
        ("n==1 or n==2 and x>0", {"n": 1, "x": -1.0}, True),  # and binds closer
        ("not n==1 and x>0", {"n": 2, "x": 1.0}, True),
        ("not not n==1", {"n": 1}, True),
        ("n!=1", {"n": None}, True),
        ("name==and", {"name": "and"}, None),
        ('name=="and"', {"name": "and"}, True),
        ("name!=a", {"name": "a"}, False),
    ],
)
def test_how_words_bind(text, row, holds):
    if holds is None:
        with pytest.raises(ConfigError, match="expected a value"):
            parse_condition(text, COLUMNS)
    else:
        assert parse_condition(text, COLUMNS)(row) is holds


@settings(max_examples=200)
@given(st.text("nx=<>!~()'\" andortf.1_", max_size=25) | st.text(max_size=20))
def test_any_other_text_is_refused_with_its_place(text):
    try:
        condition = parse_condition(text, COLUMNS)
    except ConfigError as error:
        place = int(re.search(r"character ([0-9]+): expected", str(error))[1])
        assert 1 <= place <= len(text) + 1
    else:
        condition({"n": 1, "x": 2.0, "name": "a", "flag": True, "shape": (2,)})


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("", 1, "got the end"), ("m>0", 1, "expected a column (n, x"), ("nmae==a", 1, 'Did you mean "name"?'),
        ("n>", 3, "a value"), ("n 3", 3, "one of =="), ("n>0 x>0", 5, "and, or, or the end"), ("(n>0", 5, ")"),
        ("name>a", 5, "one of == != ~ for name, which is a text"), ("n>a", 3, "a number for n"),
        ("n~1*", 2, "one of == != < <= > >= for n, which is a number"),
        ("flag==maybe", 7, "true or false"), ("name=='a", 7, "got \"'\""),
        ("(" * 999 + "n>0" + ")" * 999, 2002, "fewer"), ("__import__('os')", 1, "expected a column"),
    ],
)  # fmt: skip
def test_messages(text, place, part):
    with pytest.raises(ConfigError) as error:
        parse_condition(text, COLUMNS)
    assert f"character {place}:" in str(error.value) and part in str(error.value)


# -- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def dump(tmp_path):
    operators = [
        ("Net/Log-op0", {("output", 0): floats(3, 1)}),
        ("Net/Exp-op1", {("output", 0): floats(math.nan, 7)}),
        ("Net/Add-op2", {("output", 0): floats(math.inf, 5)}),
        ("Net/Add-op3", {("output", 0): floats(9, 5)}),
    ]
    return str(write_dump(tmp_path / "dump", operators))


def printed(capsys, *arguments):
    assert main(["stat", *arguments]) == 0
    table, _, _ = capsys.readouterr().out.partition("\n\n")  # behind it stands what to ask next
    return [tuple(line.split()) for line in table.splitlines()]


def test_rows_are_selected_sorted_and_cut(dump, capsys):
    columns = ("--columns", "full_name,max")
    rows = printed(capsys, dump, "--sort", "max", "--top", "3", *columns)
    assert rows == [("full_name", "max"), ("Net/Add-op3", "9"), ("Net/Exp-op1", "7"), ("Net/Add-op2", "5")]
    rows = printed(capsys, dump, "--sort", "max", "--reverse", "--top", "1", *columns)
    assert rows[1:] == [("Net/Log-op0", "3")]
    assert [row[0] for row in printed(capsys, dump, "--sort", "full_name", *columns)[1:3]] == [
        "Net/Add-op2",
        "Net/Add-op3",
    ]
    assert printed(capsys, dump, "--where", "nan>0 or inf>0", "--columns", "op_type,nan,inf") == [
        ("op_type", "nan", "inf"), ("Exp", "1", "0"), ("Add", "0", "1"),
    ]  # fmt: skip
    rows = printed(capsys, dump, "--where", "op_type==Add", "--columns", "full_name,max")
    assert [row[0] for row in rows] == ["full_name", "Net/Add-op2", "Net/Add-op3"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--where", "nna>0"], 'Did you mean "nan"?'),
        (["--sort", "maxx"], 'Did you mean "max"?'),
        (["--columns", "max,"], "--columns: expected a column, got ''"),
        (["--top", "0"], "--top"),
        (["--reverse"], "--sort"),
        (["--top", "1", "--csv", "out"], "without --golden and --csv"),
    ],
)
def test_what_is_wrong_is_said(dump, capsys, arguments, text):
    assert main(["stat", dump, *arguments]) == 2
    assert text in capsys.readouterr().err


def test_a_long_glob_and_a_long_condition_are_refused_in_a_few_words():
    for text, most in (("name~" + "*a" * 501, 1000), ("x>1 and " * 1300 + "x>1", 10000)):
        with pytest.raises(ConfigError, match=f"at most {most} characters") as refused:
            parse_condition(text, COLUMNS)
        assert len(str(refused.value)) < 200
    parse_condition("name~" + "*a" * 500, COLUMNS)
