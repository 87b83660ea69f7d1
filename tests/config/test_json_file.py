"""Reading a configuration file: MindSpore's first lines, then the place and the fix."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.json_file import parse_json, read_json_file, shown
from msdump.errors import ConfigError


def refusal(path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_json_file(path)
    return str(caught.value).splitlines()


def test_a_file_is_read_through_links_and_relative_paths(tmp_path, monkeypatch):
    (tmp_path / "real.json").write_bytes(b'\xef\xbb\xbf{"a": [1, -2, 0.5, "\xe7\xbd\x91", null]}\n')
    (tmp_path / "link").symlink_to("real.json")
    monkeypatch.chdir(tmp_path)
    file = read_json_file("./link")
    assert file.path == tmp_path / "real.json"
    assert file.value == {"a": [1, -2, 0.5, "网", None]}
    assert file.text == (tmp_path / "real.json").read_bytes()


def test_missing_file_offers_a_neighbour(tmp_path):
    (tmp_path / "data_dump.json").write_text("{}")
    lines = refusal(tmp_path / "data_dmp.json")
    assert lines[0] == "Get dump config file failed"
    assert "No such file" in lines[1] and 'Did you mean "data_dump.json"?' in lines[1]
    assert "no folder" in refusal(tmp_path / "nowhere" / "a.json")[1]


@pytest.mark.parametrize("name", ["loop.json", "dangling.json"])
def test_broken_links_are_missing_files(tmp_path, name):
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "dangling.json").symlink_to("nothing.json")
    assert refusal(tmp_path / name)[0] == "Get dump config file failed"


@pytest.mark.parametrize(
    ("name", "reason"),
    # Python 3.13 says which call met the character.
    [
        ("no.json", os.strerror(errno.ENOENT)),
        ("a\0.json", r"(\w+: )?embedded null (byte|character in path)"),
    ],
)
def test_the_reason_is_told_without_its_number(tmp_path, name, reason):
    assert re.search(rf"got: {reason}\. ", refusal(f"{tmp_path}/{name}")[1] + " ")


def test_wrong_suffix(tmp_path):
    (tmp_path / "dump.txt").write_text("{}")
    assert refusal(tmp_path / "dump.txt")[0] == "[DataDump] dump config file suffix only supports json! But got:.txt"


def test_no_dot(tmp_path):
    (tmp_path / "dump").write_text("{}")
    assert refusal(tmp_path / "dump")[0] == f"Invalid json file name:{tmp_path}/dump"


def test_cannot_open(tmp_path):
    (tmp_path / "dir.json").mkdir()
    assert refusal(tmp_path / "dir.json")[0] == f"Dump file:{tmp_path}/dir.json open failed. Errno:21"


@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ("", (1, 1), "The file is empty."),
        ('{\n  "a": 1,\n}', None, "Take out the comma"),
        ('{"a": [1,]}', None, "Take out the comma"),
        ('{\n  // why\n  "a": 1}', (2, 3), "JSON has no comments"),
        ("{'a': 1}", (1, 2), "double quotes"),
        ('{"a": True}', (1, 7), "true, false and null"),
        ('{"a": 1\n "b": 2}', (2, 2), "A comma is missing"),
        ('{"a": NaN}', (1, 7), ""),
        ('{"a": 1} x', (1, 10), ""),
        ('{"a": "\xff"}'.encode("latin-1"), (1, 8), "Save the file as UTF-8."),
        ("{}".encode("utf-16"), (1, 1), "Save the file as UTF-8."),
        ('{"a": "\\ud800"}', (1, 8), ""),
        ("[" * 200_000, (1, 1), ""),
    ],
)
def test_bad_json_shows_the_line(tmp_path, text, place, advice):
    path = tmp_path / "bad.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    lines = refusal(path)
    start = "Parse dump json failed, error:[json.exception.parse_error.101] parse error at line "
    assert lines[0].startswith(start if place is None else f"{start}{place[0]}, column {place[1]}: ")
    assert lines[1].startswith(f"{path}:") and advice in lines[1]
    assert lines[3].endswith("^")
    if place is not None:
        assert len(lines[3]) == 4 + place[1]


def test_numbers_beyond_double(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1e999}')
    assert "[json.exception.out_of_range.406] number overflow parsing '1e999'" in refusal(tmp_path / "a.json")[0]
    (tmp_path / "a.json").write_text("9" * 5000)
    assert "number overflow" in refusal(tmp_path / "a.json")[0]


def test_integers_above_64_bits_are_no_integers():
    value, _ = parse_json(f"[{2**64 - 1}, {2**64}, {-(2**63)}]".encode(), Path("a"))
    assert value == [2**64 - 1, float(2**64), -(2**63)] and isinstance(value[1], float)


def test_the_last_of_two_equal_keys_counts_and_is_told():
    assert parse_json(b'{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}', Path("a")) == ({"a": 3, "b": {"c": 2}}, ("c", "a"))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_what_json_writes_is_read(value):
    assert parse_json(json.dumps(value).encode(), Path("a"))[0] == value
    assert len(shown(value)) <= 80


@given(st.binary(max_size=30) | st.text('{}[]",:0123456789eE+-.truefalsn \\u').map(str.encode))
def test_any_bytes_parse_or_raise_config_error(data):
    try:
        value, _ = parse_json(data, Path("a.json"))
    except ConfigError as error:
        message = str(error)
    else:
        shown(value).encode()
        return
    assert message.startswith("Parse dump json failed, error:[json.exception.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_file_without_permission(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "a.json").chmod(0)
    assert refusal(tmp_path / "a.json")[0].endswith("open failed. Errno:13")


def test_many_keys_of_which_one_comes_twice_are_read_soon(alarm: None) -> None:
    keys = [f'"{number}": 0' for number in range(300_000)]
    value, twice = parse_json(("{" + ", ".join([*keys, keys[7]]) + "}").encode(), Path("x.json"))
    assert len(value) == 300_000 and twice == ("7",)
