"""What is private is in no answer, wherever it stands: as a path, and in every text that repeats it."""

from __future__ import annotations

import json
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.tables.messages import Message, catalogue, translations
from msdump.viewing.redaction import HIDDEN, Redaction, redacted
from tests.tables.test_messages import WORDS

_FOLDERS = st.lists(
    st.sampled_from(["SECRET", "My SECRET Project", "SECRET's, 1", "b-SECRET_2", "SECRET (copy)"]),
    min_size=1,
    max_size=3,
)
# Apart from their own structure, nothing tells where a name with these ends.
_PLAIN = st.lists(st.sampled_from(["SECRET", "My SECRET Project", "b-SECRET_2"]), min_size=1, max_size=3)
_ROOTS = st.sampled_from(["/mnt/", "/", "C:\\", "c:/", "\\\\server\\", "D:\\Users\\", "~SECRET/", "/home/"])


def _joined(root: str, folders: list[str], name: str) -> str:
    return root + ("\\" if "\\" in root else "/").join([*folders, name])


_ADDRESSES = st.builds(
    lambda scheme, user, folders, query: f"{scheme}://{user}SECRET/{'/'.join(folders)}/job{query}",
    st.sampled_from(["s3", "gs", "az", "https", "file"]),
    st.sampled_from(["", "SECRET:SECRET@"]),
    st.lists(st.sampled_from(["SECRET", "SECRET-1"]), max_size=2),
    st.sampled_from(["", "?sig=SECRET", "?token=SECRET&x=1", "#SECRET"]),
)
_PLACES = st.one_of(st.builds(_joined, _ROOTS, _PLAIN, st.sampled_from(["x.npy", "train.py"])), _ADDRESSES)
_MESSAGES = st.sampled_from(
    [
        "{}: expected a header, got 3 bytes.",
        "rank_0/x.npy: expected a file, got {}",
        "see '{}' and \"{}\"",
        "first: Default/Add-op1 (Add), {}:7  y = SECRET(x)",
        "{}",
        "a/b, {}, {}",
    ]
)


@given(_MESSAGES, _PLACES)
def test_messages_tell_no_folder_and_no_address(message: str, place: str) -> None:
    """Also of paths that no answer names."""
    if "SECRET(x)" in message:
        message = message.replace("SECRET(x)", "net(x)")
    text = Redaction({}, ["/x/dump"]).text(message.format(place, place))
    assert "SECRET" not in text
    assert ("expected" in text) == ("expected" in message)


@given(_MESSAGES, st.builds(_joined, _ROOTS, _FOLDERS, st.just("train SECRET_FREE 1.py")), st.booleans())
def test_a_path_of_the_answer_goes_from_every_text(message: str, path: str, is_line: bool) -> None:
    """Whatever is in its name."""
    path = path.replace("SECRET_FREE", "free")
    where = {"line": [path, 7, "y = SECRET(x)"]} if is_line else {"damaged": [[path, message.format(path, path)]]}
    answers: dict[str, dict[str, Any]] = {
        "overview": {"findings": [{"text": message.format(path, path), **where}]},
        "step": {"operators": {"attrs": [[["file", path], ["lines", message.format(path, path)]]]}},
    }
    redaction = Redaction(answers, ["/x/dump"])
    texts = json.dumps([redaction.of(answer) for answer in answers.values()])
    assert "SECRET" not in texts.replace("y = SECRET(x)", "" if not is_line else "y = SECRET(x)")


@given(st.lists(st.sampled_from(["conv1", "a b", "Conv", "home", "C"]), min_size=1, max_size=4).map("/".join))
def test_names_of_operators_stay(name: str) -> None:
    for label in (f"/{name}", f"Default/{name}-op1", f"{name}/"):
        answer = {
            "verdict": {"text": f"first NaN: {label}", "at": {"name": label}},
            "operators": {"name": [label, "other"], "type": ["Conv", "Conv"]},
            "golden": [label],
            "only_mine": [label],
        }
        assert redacted(answer, "/x/dump") == answer


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("shape (2, 3) / 5 of 1/2, a/b and ../c", "shape (2, 3) / 5 of 1/2, a/b and ../c"),
        ("C:\\Users\\jo smith\\x.npy", "x.npy"),
        ("/home/jo", HIDDEN),
        ("gs://bucket/team/job/x.npy: gone", f"gs://{HIDDEN}/x.npy: gone"),
        ("https://host", f"https://{HIDDEN}"),
        ("https://host/a/job?sig=abc", f"https://{HIDDEN}/job"),
        ("no file \\x1b[2J", "no file \\x1b[2J"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert Redaction({}, ["/x/dump"]).text(text) == shown


def test_an_address_of_a_dump() -> None:
    url = "s3://KEY:SECRET@bucket/my team/job"
    answer = {"dump": "my team/job", "path": url, "damaged": [[f"{url}/x.npy", f"{url}/x.npy: expected x"]]}
    shown = redacted(answer, url)
    assert shown == {"dump": "job", "path": "job", "damaged": [["x.npy", "x.npy: expected x"]]}


def test_a_report_of_two_dumps_tells_neither_place(tmp_path: Path) -> None:
    answer = {"path": str(tmp_path / "mine"), "golden_path": str(tmp_path / "golden")}
    assert redacted(answer, tmp_path / "mine") == {"path": "mine", "golden_path": "golden"}


def test_long_texts_take_linear_time() -> None:
    redaction = Redaction({}, ["/x/dump"])
    for part in ("/", "a/", " /a", "\\", "/a b", "C:\\", "~", "s3://", "?"):
        redaction.text(part * 100_000)


def test_sentences_are_redacted_alike_in_both_languages() -> None:
    path = "/home/SECRET/project/train.py"
    for template in catalogue():
        fields = [(name, spec) for _, name, spec, _ in Formatter().parse(template) if name is not None]
        # Those of `WORDS` are words of the catalogue.
        values = {name: 1 if spec else "mine" if name in WORDS else path for name, spec in fields}
        text = Message(template, values)
        shown = redacted({"path": path, "text": text, "words": translations(text)})
        assert "SECRET" not in json.dumps(shown)
        assert [english for english, _ in shown["words"]] in ([], [shown["text"]])
