"""The words of each kind of page, as they stand in tests/golden/pages: `PAGES=write` writes them anew.

What a machine, a day or a version decides is left out, and so are places and colours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.viewing.report_file import write_report
from tests.analysis.small_dump import floats, write_dump

GOLDEN = Path(__file__).parents[1] / "golden" / "pages"
IN, OUT = ("input", 0), ("output", 0)
Look = Callable[..., Any]


def write_run(folder: Path, log: float, weight: float = 0.0) -> Path:
    """Two ranks and three iterations of a forward and a backward graph. log: what an operator makes in the last one."""
    for rank in range(2):
        for iteration in range(3):
            made = floats(log if iteration == 2 else 0.5, 1)
            forward = [
                ("Default/fc1-Dense/MatMul-op0", {IN: floats(1, 2), OUT: floats(3, 4 + iteration)}),
                ("Default/fc1-Dense/Log-op1", {IN: floats(3, 4 + iteration), OUT: made}),
                ("Default/Loss-op2", {IN: made, OUT: np.array(made.sum() / (iteration + 1), np.float32)}),
                ("Parameter.fc1.weight", {OUT: floats(1, 2 + iteration / 4 + weight)}),
            ]
            write_dump(folder, forward, iteration=iteration, rank=rank)
            backward = [("Gradients/Default/fc1-Dense/MatMul-op0", {IN: made, OUT: floats(0.25, 0.5)})]
            write_dump(folder, backward, graph=1, iteration=iteration, rank=rank)
    return folder


DUMPS: dict[str, Callable[[Path], tuple[Path, Path | None]]] = {
    "healthy": lambda folder: (write_run(folder / "mine", 0.5), None),
    "nan": lambda folder: (write_run(folder / "mine", np.nan), None),
    "inf": lambda folder: (write_run(folder / "mine", np.inf), None),
    "differs": lambda folder: (write_run(folder / "mine", 0.75), write_run(folder / "golden", 0.5)),
    "agrees": lambda folder: (write_run(folder / "mine", 0.5), write_run(folder / "golden", 0.5)),
}


@pytest.mark.parametrize("name", DUMPS)
def test_the_words_of_each_page(name: str, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine, golden = DUMPS[name](tmp_path)
    write_report(Contents(mine, golden, measurements=Measurements(has_exponents=True)), tmp_path / "page.html")
    sight = look((tmp_path / "page.html").as_uri(), is_offline=True)
    links = sight.page.eval_on_selector_all(".top nav a", "all => all.map(one => one.getAttribute('href'))")
    pages = [*links, str(links[1]).replace("operators", "operator") + "/1"]
    texts = [f"== {page}\n{words(sight.go(page), tmp_path)}\n" for page in pages]
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("PAGES") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(texts), encoding="utf-8")
    assert "\n".join(texts) == file.read_text(encoding="utf-8")


def words(text: str, folder: Path) -> str:
    """Lines of a page without blanks at their ends, and without what differs from day to day."""
    text = text.replace(str(folder), "").replace(folder.name, "").replace("/mine", "mine").replace("/golden", "golden")
    text = re.sub(r"\w{3} \d+, \d{4}, [\d:]+\s[AP]M|[\d.]+ [KM]iB on disk|msdump \d[\w.]*", "…", text)
    lines = [re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line)
