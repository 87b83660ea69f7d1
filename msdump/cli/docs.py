"""`msdump docs WORDS`: search the pages of the documentation, which are installed with the package."""

from __future__ import annotations

import argparse
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msdump
from msdump.cli.exit_status import FINE
from msdump.cli.options import add_json_option, write_json
from msdump.cli.printing import say
from msdump.errors import ConfigError, NothingFoundError, did_you_mean

_MOST = 6  # sections of an answer
_WORDS = 40  # of an excerpt
_PART = 600  # letters that are ranked together
# Tables that have the words of every question.
_LAST = "answers.md performance.md gallery.md api-coverage.md acl-coverage.md compatibility.md"
# Of questions: titles such as "How do I ...?" would answer all of them.
_COMMON = frozenset(
    ("a", "an", "and", "are", "can", "do", "does", "for", "how", "i", "in", "is", "it", "my", "of", "on", "or", "the")
    + ("to", "what", "when", "which", "why", "with")
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_TITLE = re.compile(r"(#{1,4}) +(.+)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
# A word in the title counts as eight in the text.
_SEARCH = f"""
SELECT page, anchor, title, snippet(sections, 3, '', '', ' ... ', {_WORDS})
FROM sections WHERE sections MATCH ? ORDER BY instr(?, page) > 0, bm25(sections, 2.0, 0.0, 8.0, 1.0)
"""
_EPILOG = """
examples:
  msdump docs mask of Inf in a buffer    the sections that say most of it
  msdump docs --page ranks.md            one page
  msdump docs --page ranks.md#questions  one section
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Search the documentation, or print a page or a section of it."
    parser.epilog = _EPILOG
    parser.add_argument("words", metavar="TEXT", nargs="*", help="what to look for")
    parser.add_argument("--page", metavar="NAME", help="print this page, or a section: PAGE.md#SECTION")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Search or print; the result is the exit status that `--help` explains."""
    if bool(args.words) == (args.page is not None):
        raise ConfigError("TEXT: expected words to look for, or --page, got neither or both.")
    sections = list(read_sections())
    found = found_sections(sections, " ".join(args.words)) if args.words else page_sections(sections, args.page)
    if not write_json(args, lambda: {"sections": [asdict(section) for section in found]}):
        for number, section in enumerate(found):
            if args.words:
                say(f"{section.place}  {section.title}\n    {' '.join(section.text.split())}")
            else:
                say(("\n" if number else "") + f"{'#' * section.level} {section.title}\n{section.text}".rstrip())
        if args.words:
            say("\nnext:\n  msdump docs --page " + found[0].place + "  # the whole section")
    return FINE


@dataclass(frozen=True, slots=True)
class Section:
    """A title of a page and what stands below it, up to the next title.

    page    path below docs/
    anchor  of the title, as links have it; "" for that of the page
    level   1 for the title of a page
    """

    page: str
    anchor: str
    level: int
    title: str
    text: str

    @property
    def place(self) -> str:
        """What `--page` takes."""
        return f"{self.page}#{self.anchor}" if self.anchor else self.page


def pages_folder() -> Path:
    """Where the pages lie: in the package of a wheel, beside it in a clone.   Raises: ConfigError without them."""
    package = Path(msdump.__file__).parent
    for folder in (package / "pages", package.parent / "docs"):
        if (folder / "index.md").is_file():
            return folder
    raise ConfigError(
        f"expected the pages of the documentation in {package / 'pages'}, got none. Install msdump again."
    )


def read_sections() -> Iterator[Section]:
    """Sections of all English pages, by page."""
    folder = pages_folder()
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder)
        if name.parts[0] != "zh":
            yield from parse_sections(name.as_posix(), path.read_text(encoding="utf-8"))


def parse_sections(page: str, text: str) -> Iterator[Section]:
    """Sections of one page; comments are left out, and a # in a block of code is no title."""
    level, title, anchor, lines = 1, page, "", list[str]()
    is_code = False
    for line in _COMMENT.sub("", text).splitlines():
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _TITLE.fullmatch(line)
        if match is None:
            lines.append(line)
            continue
        if any(lines):
            yield Section(page, anchor, level, title, "\n".join(lines).strip("\n"))
        level, title, lines = len(match[1]), match[2], []
        anchor = "" if level == 1 else _anchor(title)
    yield Section(page, anchor, level, title, "\n".join(lines).strip("\n"))


def _anchor(title: str) -> str:
    """As the documentation's builder makes it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def found_sections(sections: Sequence[Section], text: str, most: int = _MOST) -> list[Section]:
    """The sections that say most of some words, the best first, each with an excerpt as its text.

    Edges:  of an option, such as `--tensors`, first those that have it, and of these one with a row for it in a table.
    Raises: NothingFoundError when none has any of them.
    """
    said = re.findall(r"\w+", text)
    words = [word for word in said if word.lower() not in _COMMON] or said
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE sections USING fts5(page, anchor, title, text, tokenize = 'porter')")
    except sqlite3.OperationalError as error:
        raise ConfigError(f"TEXT: expected SQLite with FTS5, got: {error}. Take --page, or another Python.") from error
    rows = (
        (section.page, section.anchor, section.title, part) for section in sections for part in _parts(section.text)
    )
    database.executemany("INSERT INTO sections VALUES (?, ?, ?, ?)", rows)
    query = " OR ".join(f'"{word}"' for word in words)
    levels = {(section.page, section.anchor): section.level for section in sections}
    found = {(section.page, section.anchor): section for section in _of_options(sections, text)[:most]}
    for page, anchor, title, part in database.execute(_SEARCH, (query, _LAST)) if words else ():
        if len(found) == most:
            break
        found.setdefault((page, anchor), Section(page, anchor, levels[page, anchor], title, part))
    database.close()
    if not found:
        raise NothingFoundError(f"TEXT: expected words of the documentation, got {text!r}. Try others.")
    return list(found.values())


def _of_options(sections: Sequence[Section], text: str) -> list[Section]:
    """Sections that have all options which some words name, each with the line of one as its text."""
    options = [re.compile(rf"(?<![\w-]){option}(?![\w-])") for option in _OPTION.findall(text)]
    found: list[tuple[bool, bool, Section]] = []
    for section in sections if options else ():
        lines = [line for line in section.text.splitlines() if any(option.search(line) for option in options)]
        if all(option.search(section.text) for option in options):
            rows = [line for line in lines if line.startswith("|") and options[0].search(line.split("|")[1])]
            found.append((not rows, section.page in _LAST, replace(section, text=(rows or lines)[0])))
    return [section for *_, section in sorted(found, key=lambda entry: entry[:2])]


def _parts(text: str) -> Iterator[str]:
    """Lines of about the same length together, as the ranking takes a word of a short text for more."""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if sum(map(len, lines)) > _PART:
            yield "\n".join(lines)
            lines = []
    if lines or not text:
        yield "\n".join(lines)


def page_sections(sections: Sequence[Section], name: str) -> list[Section]:
    """A page, or a section with those below it.   Raises: NothingFoundError, with the nearest name."""
    page, _, anchor = name.partition("#")
    of_page = [section for section in sections if section.page == page]
    if not anchor and of_page:
        return of_page
    start = next((n for n, section in enumerate(of_page) if section.anchor == anchor), None)
    if start is None:
        hint = did_you_mean(name, [section.place for section in sections] if anchor else {s.page for s in sections})
        raise NothingFoundError(f"--page: expected a page or section, got {name!r}. {hint}".rstrip())
    end = start + 1
    while end < len(of_page) and of_page[end].level > of_page[start].level:
        end += 1
    return of_page[start:end]
