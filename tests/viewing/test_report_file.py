"""The report is one file that holds all answers, within its size, and nothing in it acts that came from a dump."""

from __future__ import annotations

import base64
import getpass
import gzip
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.errors import ConfigError
from msdump.viewing.pages import Pages
from msdump.viewing.redaction import redacted
from msdump.viewing.report_file import LARGEST, asset, markdown, write_report
from tests.package import PACKAGE


class _Reader(HTMLParser):
    """Scripts, styles, the title, and every tag with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self._open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append((tag, dict(attrs).get("id", "")))

    def handle_endtag(self, tag):
        self._open.pop()

    def handle_data(self, data):
        if self._open:
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data


def read(path):
    return _Reader(path.read_text(encoding="utf-8"))


def answers_in(page):
    return json.loads(gzip.decompress(base64.b64decode(page.texts["script", "answers"])))


def test_the_markdown_has_the_notes(nan_dump):
    overview = {**Pages(Contents(nan_dump)).get("overview"), "notes": ["2 for each step of <b>."]}
    assert "\n\n2 for each step of &#60;b&#62;.\n\n" in markdown(overview)


def test_a_report_holds_every_answer(nan_dump, tmp_path):
    contents = Contents(nan_dump, measurements=Measurements(has_exponents=True))
    report = write_report(contents, tmp_path / "r.html")
    pages = Pages(contents)
    assert answers_in(read(report.path)) == {path: pages.get(path) for path in pages.paths()}
    assert report.size == report.path.stat().st_size and report.left_out == ()
    assert report.path.stat().st_mode & 0o077 == 0


def test_nothing_is_loaded_and_only_our_script_runs(nan_dump, tmp_path):
    page = read(write_report(Contents(nan_dump), tmp_path / "r.html").path)
    assert not [attrs for _, attrs in page.tags if {"src", "href"} & attrs.keys()]
    (policy,) = [attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    script = page.texts["script", ""]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy and "connect-src 'none'" in policy and "unsafe" not in policy


def test_names_of_strangers_are_data_alone(hostile_dump, tmp_path):
    folder = hostile_dump.rename(tmp_path / "<script>alert(1)<|script>")
    report = write_report(Contents(folder, measurements=Measurements(has_exponents=True)), tmp_path / "r.html")
    page = read(report.path)
    assert [tag for tag, _ in page.tags] == ["html", "head", "meta", "meta", "meta", "meta", "title", "style", "body",
                                             "div", "script", "script"]  # fmt: skip
    assert "<script>alert(1)<|script>" in page.texts["title", ""]
    assert any("<img src=x onerror=alert(1)>" in name for name in answers_in(page)["step/0/0/0"]["operators"]["name"])


def test_what_has_no_room_is_said(nan_dump, tmp_path):
    whole = write_report(Contents(nan_dump, measurements=Measurements(has_exponents=True)), tmp_path / "whole.html")
    fixed = len(asset("app.js")) + len(asset("app.css"))
    seen = set()
    for share in (0.95, 0.8, 0.6, 0.45):
        room = fixed + int((whole.size - fixed) * share)
        report = write_report(
            Contents(nan_dump, measurements=Measurements(has_exponents=True)), tmp_path / "less.html", max_bytes=room
        )
        answers = answers_in(read(report.path))
        assert report.size <= room and report.left_out
        assert answers["overview"]["left_out"] == list(report.left_out)
        seen |= set(report.left_out)
        dropped = [path for path in ("step/0/0/1", "trend/0/0") if path not in answers]
        assert all(any(path in sentence for sentence in report.left_out) for path in dropped)
        assert dropped in ([], ["trend/0/0"], ["step/0/0/1", "trend/0/0"])
    assert "No room for the exponents of healthy tensors." in seen
    with pytest.raises(ConfigError, match=r"--max-size: expected room for [0-9]+ bytes at least, got 1000"):
        write_report(Contents(nan_dump), tmp_path / "none.html", max_bytes=1000)
    assert not (tmp_path / "none.html").exists()


def test_a_report_replaces_reports_alone(nan_dump, tmp_path):
    target = tmp_path / "train.py"
    target.write_text("print()\n")
    with pytest.raises(ConfigError, match="expected a place for a report, got another file"):
        write_report(Contents(nan_dump), target)
    assert target.read_text() == "print()\n"
    for _ in range(2):
        write_report(Contents(nan_dump), tmp_path / "r.html")


def test_a_redacted_report_tells_no_places(nan_dump, tmp_path):
    report = write_report(Contents(nan_dump), tmp_path / "r.html", is_redacted=True)
    text = json.dumps(answers_in(read(report.path)))
    assert str(nan_dump.parent) not in text and str(Path.home()) not in text
    assert "self.middle(x)" not in text and "train.py" in text
    assert not re.search(r'"/\w', text)
    assert not re.search(rf"\b{re.escape(getpass.getuser())}\b", text)


def test_redaction_of_messages(tmp_path):
    message = f"{tmp_path}/dump/rank_0/x.npy: expected a header, got C:\\Users\\me\\y.npy and a/b"
    answer = redacted({"damaged": [["x", message]], "number": 3}, tmp_path / "dump")
    ((_, text),) = answer["damaged"]
    assert str(tmp_path) not in text and "Users" not in text
    assert text.endswith("a/b") and "x.npy: expected a header" in text and answer["number"] == 3


def test_markdown_is_short_and_inert(hostile_dump):
    text = markdown(Pages(Contents(hostile_dump)).get("overview"))
    assert len(text) <= LARGEST
    prose = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not [line for line in prose if "<img" in line or "](" in line or "\x1b" in line]
    assert any(line.startswith("### ❌") for line in prose)


def test_markdown_fits_into_a_comment(nan_dump, moved_dump, golden_dump_folder):
    for contents in (Contents(nan_dump), Contents(moved_dump, golden_dump_folder)):
        overview = Pages(contents).get("overview")
        many = {
            **overview,
            "findings": [{**finding, "text": "\n".join([finding["text"]] * 20)} for finding in overview["findings"]]
            * 9,
            "steps": {name: column * 60 for name, column in overview["steps"].items()},
            "notes": ["a note of some words"] * 9,
            "damaged": [["file", "reason " * 20]] * 9,
        }
        for answer in (overview, many):
            lines = markdown(answer).splitlines()
            assert len(lines) <= 40 and max(map(len, lines)) <= 100
        assert lines[-1].endswith(" more rows are not shown.") and "more findings." in markdown(many)
        table = [line for line in lines if line.startswith("| ") and "rank" not in line]
        assert all(
            line.endswith(f"| {min(overview['steps']['health'], key=overview['healths'].index)} |") for line in table
        )


def test_markdown_is_cut_where_github_would(nan_dump):
    overview = Pages(Contents(nan_dump)).get("overview")
    many = {**overview, "damaged": [["f" * 5000, "r" * 50000]] * 2}
    assert LARGEST - 100 < len(markdown(many)) <= LARGEST


def test_the_bundle_is_plain_and_has_its_licences():
    assert "</script" not in asset("app.js").lower() and "</style" not in asset("app.css").lower()
    assert "innerHTML" not in Path(__file__).parents[2].joinpath("frontend/src/app.js").read_text()
    third_party = asset("THIRD_PARTY.txt")
    package = json.loads((Path(__file__).parents[2] / "frontend/package.json").read_text())
    assert all(f"{name} {version}\n" in third_party for name, version in package["dependencies"].items())
    assert os.path.getsize(PACKAGE / "viewing/assets/app.js") < 900_000
