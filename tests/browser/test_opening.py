"""Pages open on the answer: what is wrong is in sight, and says so in a line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.ranks.test_words import make_job
from tests.analysis.small_dump import floats, write_dump
from tests.browser.conftest import configuration, run

IN, OUT = ("input", 0), ("output", 0)
BAD = floats(np.nan, 1)
GELU = """\
import torch

torch.manual_seed(0)
x = torch.randn(4, 8)
(torch.nn.functional.gelu(x * 2, approximate="{form}") + 1).sum()
"""
Look = Callable[..., Any]
Served = Callable[..., str]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Two iterations of 300 operators; the last but ten makes a NaN in the second one."""
    for iteration in range(2):
        operators = [(f"Net/Add-op{at}", {IN: floats(1, 2), OUT: floats(at, iteration)}) for at in range(300)]
        if iteration == 1:
            operators[290] = ("Net/Log-op290", {IN: floats(1, 2), OUT: BAD})
        write_dump(tmp_path / "long", operators, iteration=iteration)
    return tmp_path / "long"


def is_in_sight(sight: Any, text: str) -> bool:
    row = sight.page.locator("tr", has_text=text).first
    box = row.bounding_box()
    return box is not None and 0 < box["y"] < sight.page.viewport_size["height"] - box["height"]


def test_operators_open_at_the_first_bad_row(long: Path, served: Served, look: Look) -> None:
    sight = look(served(long))
    sight.go("#/operators/0/0/1")
    sight.page.wait_for_timeout(200)
    assert is_in_sight(sight, "Net/Log-op290") and sight.page.locator("tr", has_text="Net/Add-op0").count() == 0


def test_a_trend_begins_with_what_went_wrong_first(served: Served, look: Look, tmp_path: Path) -> None:
    for iteration in range(4):
        late, early = (BAD if iteration >= first else floats(1, 2) for first in (3, 1))
        operators = [("Net/Add-op0", {OUT: floats(1, 2)}), ("Net/Log-op1", {IN: floats(1, 2), OUT: late}),
                     ("Net/Sqrt-op2", {IN: floats(1, 2), OUT: early})]  # fmt: skip
        write_dump(tmp_path / "dump", operators, iteration=iteration)
    sight = look(served(tmp_path / "dump"))
    sight.go("#/trend/0/0/1")
    names = sight.page.locator("tr.row a.name").all_inner_texts()
    assert names == ["Net/Sqrt-op2", "Net/Log-op1", "Net/Add-op0", "Net/Log-op1", "Net/Sqrt-op2"]
    assert "L2 of iteration 3" in sight.page.inner_text("thead")


def test_ranks_open_with_who_is_outvoted_in_what(served: Served, look: Look, tmp_path: Path) -> None:
    sight = look(
        served(
            make_job(tmp_path / "job", lambda rank, iteration, name: (rank, name) == (1, "proj"), ("Parameter.proj",))
        )
    )
    text = sight.go("#/ranks/0/0/0")
    assert sight.page.inner_text("main h1") == "rank 1: proj differs from iteration 0 on"
    assert "L2 of rank 3" in text and sight.page.get_by_label("bad only").is_checked()
    assert sight.page.locator("tr.row").count() == 1 and "proj" in sight.page.inner_text("tr.row")
    sight.page.locator("main h1 a").click()
    sight.rest()
    assert sight.page.locator(".panel h2").first.inner_text() == "proj"


def test_source_has_jumps_to_the_lines_that_are_not_well(
    dumps: Callable[[str], Path], served: Served, look: Look
) -> None:
    sight = look(served(dumps("torch-eager")))
    sight.page.locator("nav a", has_text="Source").click()
    sight.rest()
    button = sight.page.locator(".jumps button").first
    assert "not finite made here" in button.inner_text() and "train.py:17" in button.inner_text()
    button.click()
    assert is_in_sight(sight, "torch.log")


def test_the_origin_of_an_inf_says_inf(served: Served, look: Look, tmp_path: Path) -> None:
    chain = [
        ("D/Exp-op1", {IN: floats(1e3, 1), OUT: floats(np.inf, 1)}),
        ("D/Neg-op2", {IN: floats(np.inf, 1), OUT: floats(-np.inf, 1)}),
    ]
    sight = look(served(write_dump(tmp_path / "dump", chain)))
    assert "Inf 1" in sight.go("#/nan") and "NaN 0" not in sight.page.inner_text(".stage")


def test_a_graph_says_that_it_is_laid_out(long: Path, served: Served, look: Look) -> None:
    """While its frame is empty, and not after that."""
    sight = look(
        served(long),
        before=lambda page: page.add_init_script(
            "window.Worker = class { postMessage() {} terminate() {} }; window.isSlow = true;"
        ),
    )
    sight.page.evaluate("location.hash = '#/graph/0/0/1'")
    sight.page.wait_for_selector(".stage .waiting")
    assert "The graph is being laid out" in sight.page.inner_text(".stage")
    quick = look(served(long))
    assert "being laid out" not in quick.go("#/graph/0/0/1") and quick.page.locator("[data-id]").count() > 0


def test_the_attribute_that_differs_is_in_the_headline(served: Served, look: Look, tmp_path: Path) -> None:
    dumps = []
    for name, form in (("mine", "tanh"), ("golden", "none")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(GELU.format(form=form))
        configuration(tmp_path / name)
        run(tmp_path / name, "-m", "msdump", "run", "--config", "dump.json", "--torch-eager", "train.py")
        dumps.append(tmp_path / name / "dump")
    sight = look(served(*dumps))
    why = "attribute approximate: tanh against its default"
    assert sight.page.inner_text(".headline .why") == why
    sight.page.locator("nav a", has_text="Compare").click()
    sight.rest()
    assert sight.page.inner_text("main .answer .why") == why
    sight.page.locator("main .answer a").click()
    sight.rest()
    assert "gelu" in sight.page.inner_text(".panel h2") and "tanh" in sight.page.inner_text(".panel .attributes")


def write_codes(folder: Path, number: float) -> Path:
    """A product with a weight in codes, behind rounding of what it reads."""
    codes, x, c, w = (np.arange(6, dtype=dtype) + 2 for dtype in (np.int8, np.float32, np.int8, np.float32))
    operators = [
        ("Net/DequantizeLinear-op0", {IN: codes - 7, OUT: w * 3}),
        ("Net/QuantizeLinear-op1", {IN: x, OUT: c}),
        ("Net/DequantizeLinear-op2", {IN: c, OUT: x * 2}),
        ("Net/Mul-op3", {IN: x * 2, ("input", 1): w * 3, OUT: x * w * 6 * number}),
    ]
    return write_dump(folder, operators)


def test_numbers_of_weights_codes_are_left_out_of_tables(served: Served, look: Look, tmp_path: Path) -> None:
    sight = look(served(*(write_codes(tmp_path / name, number) for name, number in (("mine", 1.0), ("golden", 2.0)))))
    for page in ("operators", "compare"):
        sight.go(f"#/{page}/0/0/0?bad=0")
        for shown in (False, True):
            box = sight.page.locator("label", has_text="Dequantize of weights (1)").locator("input")
            box.set_checked(shown)
            text = sight.rest()
            assert ("DequantizeLinear-op0" in text) is shown and "DequantizeLinear-op2" in text and "Mul-op3" in text


def test_four_blocks_that_are_alike_inside_stay_apart(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("blocks")))
    sight.page.evaluate("to => { location.hash = to }", sight.page.get_attribute(".top nav a:nth-child(2)", "href"))
    sight.rest()
    names = sight.page.locator("td a.name").all_inner_texts()
    assert len(set(names)) == len(names) == 18
    own = [name for name in names if name.startswith("/blocks.")]
    assert own == [
        f"/blocks.{block}/{part}" for block in range(4) for part in ("up/Gemm", "act/Relu", "down/Gemm", "Add")
    ]
    assert "loss" not in sight.go("#/overview")
    text = sight.go(str(sight.page.get_attribute("nav a[href^='#/graph']", "href")))
    assert "blocks.* × 4" in text
