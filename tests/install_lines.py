"""The lines of README and the documentation that install msdump, by one variable: `python -m tests.install_lines`.

While the name is on no index, `SOURCE` is "clone", "wheel" or "git"; once it is, "index". After a change this program
writes all lines anew, and tests/test_install_lines.py says which do not agree. Lines that work on msdump itself
(`pip install -e ...`) always are of a clone. Messages of the program say `pip install 'msdump[view]'`: where msdump is
installed, pip asks no index for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent

SOURCE = "clone"
# Address of the repository, for "git".
REPOSITORY = ""

ADVICE = "Run: python -m tests.install_lines"
# What pip is asked for; EXTRAS is "[view]" or nothing.
_REQUIREMENTS = {
    "clone": ".EXTRAS",
    "wheel": "./msdump-VERSION-py3-none-any.whlEXTRAS",
    "git": "msdumpEXTRAS @ git+REPOSITORY@vVERSION",
    "index": "msdumpEXTRAS",
}
# Where the first line of the installation is typed, in the languages of the documentation.
_PLACES = {
    "clone": ("From a clone of this repository, with Python", "在本仓库的克隆目录中，使用 Python"),
    "wheel": ("In the folder of the wheel, with Python", "在 wheel 文件所在目录中，使用 Python"),
    "git": ("With git and Python", "使用 git 和 Python"),
    "index": ("With Python", "使用 Python"),
}
_LINE = re.compile(
    r"pip install (?P<quote>'?)"
    r"(?:\.(?![/\w])|(?:\./)?msdump-\d+\.\d+\.\d+-py3-none-any\.whl|msdump(?![\w-]))"
    r"(?P<extras>\[[\w,-]+\])?(?: @ git\+[^\s'`]+)?(?P=quote)"
)


def pages(root: Path = ROOT) -> Iterator[Path]:
    """READMEs and pages that a user reads."""
    yield from sorted([*root.glob("README*.md"), *root.glob("docs/**/*.md"), *root.glob("sample_code/*/README.md")])


def version(root: Path = ROOT) -> str:
    """The version that msdump/_version.py has; in a tree without a package, that of the one that is installed."""
    folder = root / "msdump" if (root / "msdump").is_dir() else PACKAGE
    return re.findall(r'^__version__ = "(.+)"$', (folder / "_version.py").read_text(), re.MULTILINE)[0]


def rewritten(text: str, source: str, release: str, repository: str = "") -> str:
    """A page whose lines install from another source.   Raises: ValueError for git without an address."""
    if source == "git" and not repository:
        raise ValueError('REPOSITORY: expected the address of the repository for SOURCE = "git", got none.')

    def line(match: re.Match[str]) -> str:
        wanted = _REQUIREMENTS[source].replace("REPOSITORY", repository).replace("VERSION", release)
        wanted = wanted.replace("EXTRAS", match["extras"] or "")
        return f"pip install '{wanted}'" if re.search(r"[\[ ]", wanted) else f"pip install {wanted}"

    for place, chosen in zip(zip(*_PLACES.values(), strict=True), _PLACES[source], strict=True):
        # The longest first: others may be the end of it.
        text = re.sub(f"(?m)^(?:{'|'.join(map(re.escape, sorted(place, key=len, reverse=True)))})(?= 3)", chosen, text)
    return _LINE.sub(line, text)


def wrong_lines(root: Path = ROOT, source: str = SOURCE, repository: str = REPOSITORY) -> list[str]:
    """("README.md:40: pip install ...", ...): lines that another source is asked for."""
    found = []
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        lines = zip(text.splitlines(), rewritten(text, source, version(root), repository).splitlines(), strict=True)
        name = page.relative_to(root)
        found += [f"{name}:{number}: {mine}" for number, (mine, wanted) in enumerate(lines, 1) if mine != wanted]
    return found


def main() -> int:
    """Write all lines anew; 0."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(rewritten(text, SOURCE, version(), REPOSITORY), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
