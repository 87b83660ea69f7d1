"""Chinese pages: what each has in common with the English page that it translates, and a record of what was translated.

docs/zh/PAGE translates docs/PAGE, and README.zh.md README.md. Compared are titles, code, tables, links, numbers and
what stands in backquotes. Of the rest, the record keeps a hash for each section of the English text at the time of
the translation.

python -m tests.chinese_pages            what is not translated, and what changed since
python -m tests.chinese_pages PAGE ...   after a translation: take over links, code and figures, compare, record
python -m tests.chinese_pages --all      the same for all pages
"""

from __future__ import annotations

import argparse
import calendar
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.snippets import ROOT

DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"
RECORD = ROOT / "tests" / "chinese_pages.json"

# For those who work on msdump itself, long lists of names, and measurements: English alone.
ENGLISH_ONLY = {
    "acl-coverage.md",
    "api-coverage.md",
    "api.md",
    "architecture.md",
    "performance.md",
    "reading-order.md",
    "viewer-data.md",
    *(f"recipes/{path.name}" for path in DOCS.glob("recipes/*.md")),
}
# Pages for users that have no Chinese one yet. A page leaves this list, and none comes in but a new one.
NOT_YET: set[str] = set()

# Above a block whose words are translated, such as a tree of folders with remarks.
TRANSLATED = "<!-- translated -->"
# Above a paragraph for Chinese readers that the English page has not.
ONLY_HERE = "<!-- only here -->"
_FENCE = re.compile(
    r"^(?P<mark>(?:<!--[^\n]*-->\n)?)(?P<ticks>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=ticks)$", re.S | re.M
)
_TITLE = re.compile(r"^(#{1,6}) +(.+)$", re.M)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_COMMENT = re.compile(r"(^|\s)#( .*)$", re.M)
_WORDS = {"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7"}
_WORDS |= {"eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "first": "1", "second": "2"}
_WORDS |= {"third": "3", "once": "1", "twice": "2", "half": "2"}
_WORDS |= {name.lower(): str(number) for number, name in enumerate(calendar.month_name) if name}
_SCALES = {"million": 10**6, "billion": 10**9, "万": 10**4, "亿": 10**8}
_BLOCK = "\0"


class Block(NamedTuple):
    """A fenced block of code."""

    language: str
    text: str
    is_translated: bool


class Section(NamedTuple):
    """A title and what stands below it, up to the next title."""

    level: int
    title: str
    prose: str
    blocks: list[Block]


def sections(text: str) -> list[Section]:
    """Sections of a page, in order; each has the blocks of code taken out of its prose."""
    blocks = [Block(match["language"], match["text"], TRANSLATED in match["mark"]) for match in _FENCE.finditer(text)]
    text = re.sub(rf"^{ONLY_HERE}\n(?:.+\n)+", "", text, flags=re.M)
    text = re.sub(r"<!--.*?-->\n?", "", _FENCE.sub(_BLOCK, text), flags=re.S)
    titles = list(_TITLE.finditer(text))
    ends = [*(title.start() for title in titles[1:]), len(text)]
    found, taken = [], 0
    for title, end in zip(titles, ends, strict=True):
        prose = text[title.end() : end]
        count = prose.count(_BLOCK)
        found.append(Section(len(title[1]), title[2], prose.replace(_BLOCK, ""), blocks[taken : taken + count]))
        taken += count
    return found


def fingerprints(text: str) -> list[list[str]]:
    """Title and hash of each section. Blanks and targets of links do not count, code is compared by itself."""
    return [
        [section.title, hashlib.sha256(" ".join(_LINK.sub(r"\2", section.prose).split()).encode()).hexdigest()[:12]]
        for section in sections(text)
    ]


def twin(page: Path) -> Path:
    """The Chinese page of an English one, which may not exist; what has none is its own."""
    if page.suffix != ".md" or not page.is_relative_to(DOCS) or page.is_relative_to(CHINESE):
        return ROOT / "README.zh.md" if page == ROOT / "README.md" else page
    return CHINESE / page.relative_to(DOCS)


def anchor(title: str) -> str:
    """Of a title, as the documentation's builder and GitHub make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def expected_link(english: Path, link: str) -> str:
    """Where a link of an English page leads in the Chinese one: to the Chinese page and title where there is one."""
    if "://" in link:
        return link
    target, _, title = link.partition("#")
    page = Path(os.path.normpath(english.parent / target)) if target else english
    other = twin(page)
    if other != page and other.is_file():
        if title:
            places = [anchor(section.title) for section in sections(page.read_text(encoding="utf-8"))]
            names = [anchor(section.title) for section in sections(other.read_text(encoding="utf-8"))]
            title = names[places.index(title)] if title in places and len(places) == len(names) else title
        page = other
    path = os.path.relpath(page, twin(english).parent) if page != twin(english) else ""
    return f"{path}#{title}" if title else path


def differences(english: Path, chinese: str | None = None) -> Iterator[str]:
    """What a Chinese page has otherwise than its English one, a line each; its text may be given."""
    there = sections(english.read_text(encoding="utf-8"))
    here = sections(twin(english).read_text(encoding="utf-8") if chinese is None else chinese)
    outline = [section.level for section in there]
    if outline != [section.level for section in here]:
        yield (
            f"expected the titles of the English page, {[section.title for section in there]}, "
            f"got {[section.title for section in here]}"
        )
        return
    for number, (mine, other) in enumerate(zip(here, there, strict=True)):
        links = [expected_link(english, link) for _, _, link in _LINK.findall(_SPAN.sub("", other.prose))]
        if number == 0:  # from either to the other
            links = [os.path.relpath(english, twin(english).parent), *filter(None, links)]
        kinds = [
            ("links", links, [link for _, _, link in _LINK.findall(_SPAN.sub("", mine.prose))]),
            ("blocks of code", [b.language for b in other.blocks], [b.language for b in mine.blocks]),
            ("lines of code", *_code(other.blocks, mine.blocks)),
            ("rows of tables", *([_columns(row) for row in _rows(s.prose)] for s in (other, mine))),
            ("list items", [other.prose.count("\n- ")], [mine.prose.count("\n- ")]),
            ("names in backquotes", *({_flat(span) for span in _SPAN.findall(s.prose)} for s in (other, mine))),
            ("numbers", *_numbers(other, mine)),
        ]
        for kind, wanted, got in kinds:
            lacking, foreign = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
            if lacking or foreign:
                yield (
                    f"section {mine.title!r} ({other.title!r}), {kind}: lacks {sorted(map(str, lacking))}, "
                    f"has {sorted(map(str, foreign))} that the English one has not"
                )


def _code(english: list[Block], chinese: list[Block]) -> tuple[list[str], list[str]]:
    """Lines of the blocks of both. Comments do not count; of a translated block, numbers and how many lines."""

    def lines(block: Block, is_translated: bool) -> list[str]:
        text = block.text if block.language == "text" else _COMMENT.sub("", block.text)
        kept = [line.rstrip() for line in text.splitlines()]
        return [" ".join(_NUMBER.findall(line)) for line in kept] if is_translated else kept

    pairs = list(zip(english, chinese, strict=False))
    return (
        [line for other, mine in pairs for line in lines(other, mine.is_translated)],
        [line for _, mine in pairs for line in lines(mine, mine.is_translated)],
    )


def _rows(prose: str) -> list[str]:
    return re.findall(r"^\|.*$", prose, re.M)


def _columns(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _numbers(english: Section, chinese: Section) -> tuple[list[str], list[str]]:
    """Those of the text, and of each row of a table. A number that the English text says as a word may be in digits."""

    def units(section: Section) -> list[str]:
        text = _plain(section.prose)
        return [re.sub(r"^\|.*$", "", f"{section.title}\n{text}", flags=re.M), *_rows(text)]

    wanted, got = [], []
    for other, mine in zip(units(english), units(chinese), strict=False):
        said = {_WORDS[word] for word in re.findall(r"[a-z]+", other.lower()) if word in _WORDS}
        digits = set(_NUMBER.findall(other))
        wanted += sorted(digits)
        got += sorted(set(_NUMBER.findall(mine)) - (said - digits))
    return wanted, got


def relinked(english: Path) -> str:
    """The Chinese page with each link that leads to an English page set to the Chinese one, where there is one."""
    page = twin(english)
    text = page.read_text(encoding="utf-8")
    own = os.path.relpath(english, page.parent)

    def replaced(match: re.Match[str]) -> str:
        target = match[3]
        if target == own and match[2] == "English":
            return match[0]
        place = Path(os.path.normpath(page.parent / target.partition("#")[0]))
        is_english = target.partition("#")[0] != "" and "://" not in target and twin(place) != place
        if not is_english:
            return match[0]
        title = target.partition("#")[2]
        link = os.path.relpath(place, english.parent) + (f"#{title}" if title else "")
        return f"{match[1]}[{match[2]}]({expected_link(english, link)})"

    return _LINK.sub(replaced, text)


def taken_over(english: Path, text: str) -> str:
    """The text of a Chinese page with code, and cells of tables without words, as the English page has them.

    Where one of both has another number of blocks, or of rows, they stay as they are. So do comments, and what says the
    same with other marks between.
    """
    theirs = english.read_text(encoding="utf-8")
    blocks, own = (list(_FENCE.finditer(page)) for page in (theirs, text))
    if [match["language"] for match in blocks] == [match["language"] for match in own]:
        codes = iter([match["text"] for match in blocks])
        text = _FENCE.sub(lambda match: _code_of(match, next(codes)), text)
    rows, own_rows = (_rows(_FENCE.sub("", page)) for page in (theirs, text))
    if [_columns(row) for row in rows] == [_columns(row) for row in own_rows]:
        for old, new in zip(own_rows, map(_row_of, own_rows, rows), strict=True):
            text = text.replace(f"\n{old}\n", f"\n{new}\n", 1)
    return text


def _code_of(own: re.Match[str], code: str) -> str:
    has_translated_comments = not own["text"].isascii() and _COMMENT.sub("", code) == _COMMENT.sub("", own["text"])
    is_kept = has_translated_comments or TRANSLATED in own["mark"]
    return own[0] if is_kept else own[0].replace(own["text"], code)


def _row_of(own: str, english: str) -> str:
    cells, others = (re.split(r"(?<!\\)\|", row) for row in (own, english))
    return "|".join(
        other if _facts(mine) != _facts(other) and not re.search(r"[^\W\d_]", _SPAN.sub("", other)) else mine
        for mine, other in zip(cells, others, strict=True)
    )


def _facts(cell: str) -> tuple[list[str], list[str]]:
    return sorted(_SPAN.findall(cell)), _NUMBER.findall(_plain(cell))


def _plain(text: str) -> str:
    """A text without code and targets of links, with its numbers in digits alone."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", _SPAN.sub(" ", _LINK.sub(r"\2", text)))
    return re.sub(rf"([\d.]+) ({'|'.join(_SCALES)})", lambda m: f"{float(m[1]) * _SCALES[m[2]]:.0f}", text)


def recorded() -> dict[str, list[list[str]]]:
    """Title and hash of the English sections that were translated, by page."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8")))


def changed(name: str) -> list[str]:
    """Titles of English sections that changed since a page was translated, or came in."""
    known = {tuple(entry) for entry in recorded().get(name, [])}
    now = fingerprints((ROOT / name).read_text(encoding="utf-8"))
    return [title for title, mark in now if (title, mark) not in known]


def translated() -> list[str]:
    """English pages that have a Chinese one, by their paths."""
    pages = sorted(DOCS / path.relative_to(CHINESE) for path in CHINESE.rglob("*.md"))
    return [page.relative_to(ROOT).as_posix() for page in [ROOT / "README.md", *pages]]


def untranslated() -> set[str]:
    """Pages of the documentation for users that have none, by their paths below docs/."""
    pages = {path for path in DOCS.rglob("*.md") if not path.is_relative_to(CHINESE) and not twin(path).is_file()}
    return {page.relative_to(DOCS).as_posix() for page in pages} - ENGLISH_ONLY


def main(arguments: list[str] | None = None) -> int:
    """Compare and record; 1 where a page is not as its English one, and is not recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", metavar="PAGE", nargs="*", help="paths of English pages")
    parser.add_argument("--all", action="store_true", help="all Chinese pages")
    args = parser.parse_args(arguments)
    pages = translated() if args.all else args.pages
    if not pages:
        for name in translated():
            for title in changed(name) if (ROOT / name).is_file() else ["(the page is gone)"]:
                print(f"changed: {name}, section {title!r}")
        print("not translated:", *sorted(untranslated()))
        return 0
    record, failed = recorded(), False
    for name in translated():
        twin(ROOT / name).write_text(relinked(ROOT / name), encoding="utf-8")
    for name in pages:
        page = twin(ROOT / name)
        page.write_text(taken_over(ROOT / name, page.read_text(encoding="utf-8")), encoding="utf-8")
        found = list(differences(ROOT / name))
        failed |= bool(found)
        for line in found:
            print(f"{name}: {line}")
        if not found:
            record[name] = fingerprints((ROOT / name).read_text(encoding="utf-8"))
    kept = {name: record[name] for name in translated() if name in record}
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in marks) + "\n]"
        for name, marks in kept.items()
    ]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
