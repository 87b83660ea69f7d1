"""The graph as a person uses it: scopes that open in place, by mouse and by keys alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus

import numpy as np
import pytest

from tests.analysis.small_dump import Tensors, write_dump
from tests.browser.test_screens import VIOLATIONS, axe  # noqa: F401

Look = Callable[..., Any]
Served = Callable[..., str]
IN, OUT = ("input", 0), ("output", 0)
STEP = "0/0/0"
FITS = """all => {
    const stage = document.querySelector('.stage').getBoundingClientRect();
    return all.map(one => one.getBoundingClientRect()).every(({left, right, top, bottom}) =>
        left >= stage.left && right <= stage.right && top >= stage.top && bottom <= stage.bottom);
}"""
LAYERS = 6


def chain(bad: int | None = None, shift: int | None = None, scale: float = 1) -> list[tuple[str, Tensors]]:
    """Layers of an operator, a view and an operator, which read what the one before made.

    bad     layer that makes a NaN
    shift   layer whose results are others
    """
    rng = np.random.default_rng(0)
    operators: list[tuple[str, Tensors]] = []
    value = rng.standard_normal(8).astype(np.float32)
    operators.append(("Net/Data-op0", {OUT: value}))
    for layer in range(LAYERS):
        made = rng.standard_normal(8).astype(np.float32) * np.float32(scale if layer == shift else 1)
        if bad is not None and layer >= bad:
            made[3] = np.nan
        view = made.reshape(2, 4)
        after = rng.standard_normal((2, 4)).astype(np.float32)
        if bad is not None and layer >= bad:
            after[0, 0] = np.nan
        scope = f"Net/layers.{layer}-Block"
        operators.append((f"{scope}/Mul-op{3 * layer + 1}", {IN: value, OUT: made}))
        operators.append((f"{scope}/Reshape-op{3 * layer + 2}", {IN: made, OUT: view}))
        operators.append((f"{scope}/Add-op{3 * layer + 3}", {IN: view, OUT: after}))
        value = after
    operators.append((f"Net/Exp-op{3 * LAYERS + 1}", {IN: value, OUT: rng.standard_normal(3).astype(np.float32)}))
    return operators


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "bad", chain(bad=3))


def nodes(sight: Any) -> list[str]:
    return [
        str(name) for name in sight.page.eval_on_selector_all(".node .title", "all => all.map(one => one.textContent)")
    ]


def camera(sight: Any) -> str:
    return str(sight.page.get_attribute(".canvas > g", "transform"))


def test_it_opens_at_the_finding_and_scopes_open_in_place(bad: Path, served: Served, look: Look) -> None:
    sight = look(served(bad))
    text = sight.go(f"#/graph/{STEP}")
    assert "recovered from equal tensors" in text
    assert "✖ Mul-op10" in nodes(sight) and sight.page.locator(".flow.red").count() > 0
    assert not any("Reshape" in name for name in nodes(sight)) and "1 view" in text

    sight.page.get_by_role("button", name="close all").click()
    sight.rest()
    assert [name.removeprefix("▸ ") for name in nodes(sight)] == [
        "Data-op0",
        f"✖ layers.*-Block × {LAYERS}",
        "▼ Exp-op19",
    ]
    assert sight.page.locator(".repeat .cell").count() == LAYERS
    assert sight.page.locator(".repeat .cell.fill-made").count() == 1
    sight.page.locator(".node.repeat").click()
    sight.rest()
    assert len(nodes(sight)) == 3 + LAYERS
    sight.page.locator(".node.scope").nth(1).click()
    sight.rest()
    before = nodes(sight)
    assert "Add-op6" in before and "Add-op3" not in before
    assert "layers.1-Block" in unquote_plus(sight.page.url)
    sight.page.reload()
    sight.rest()
    assert nodes(sight) == before

    sight.page.get_by_label("views as boxes").check()
    sight.rest()
    assert "Reshape-op5" in nodes(sight)
    sight.page.get_by_label("statistic").select_option("nan")
    sight.rest()
    assert "NaN 3" in sight.page.text_content(".stage")
    sight.page.locator("a.node", has_text="Add-op6").click()
    assert "Add-op6" in sight.rest() and "op=" + quote(f"{STEP}/6", "") in sight.page.url


def test_keys_alone_reach_everything(bad: Path, served: Served, look: Look) -> None:
    sight = look(served(bad))
    sight.go(f"#/graph/{STEP}")
    keys = sight.page.keyboard
    keys.press("/")
    sight.page.wait_for_timeout(100)
    keys.type("add op6")
    assert sight.page.locator("#found li").count() == 1
    keys.press("Enter")
    sight.rest()
    assert "Add-op6" in nodes(sight) and sight.page.locator(".node.current .title").text_content() == "Add-op6"
    keys.press("Escape")
    sight.page.locator(".node.current").focus()
    keys.press("ArrowUp")
    sight.rest()
    assert sight.page.evaluate("document.activeElement.querySelector('.title').textContent") == "Mul-op4"
    for key in ("+", "0", "-"):
        before = camera(sight)
        keys.press(key)
        sight.page.wait_for_timeout(50)
        assert camera(sight) != before, key
    scope = sight.page.locator(".node.open", has_text="layers.1-Block")
    scope.focus()
    keys.press("Enter")
    sight.rest()
    assert sight.page.evaluate("document.activeElement.ariaExpanded") == "false" and "Add-op6" not in nodes(sight)
    keys.press(" ")
    sight.rest()
    assert "Add-op6" in nodes(sight)
    # Every box has a place in the order of Tab, and a name.
    boxes = sight.page.locator(".node")
    assert all(boxes.nth(at).get_attribute("aria-label") for at in range(boxes.count()))
    assert sight.page.evaluate("[...document.querySelectorAll('.node')].every(one => one.tabIndex === 0)")
    sight.page.locator("a.node", has_text="Add-op6").focus()
    keys.press("Enter")
    sight.rest()
    assert "op=" + quote(f"{STEP}/6", "") in sight.page.url


def test_the_picture_moves(bad: Path, served: Served, look: Look) -> None:
    sight = look(served(bad))
    sight.go(f"#/graph/{STEP}")
    box = sight.page.locator(".stage").bounding_box()
    assert box["width"] > 1200 and box["height"] > 500  # it fills the window
    x, y = box["x"] + 40, box["y"] + 40
    seen = [camera(sight)]

    def moved() -> None:
        sight.page.wait_for_timeout(50)
        assert camera(sight) != seen[-1]
        seen.append(camera(sight))

    sight.page.mouse.move(x, y)
    sight.page.mouse.wheel(0, -300)
    moved()
    sight.page.mouse.down()
    sight.page.mouse.move(x + 80, y + 30, steps=4)
    sight.page.mouse.up()
    moved()
    sight.page.locator(".minimap").click(position={"x": 20, "y": 20})
    moved()
    sight.page.get_by_role("button", name="show all").click()
    moved()
    assert sight.page.eval_on_selector_all(".node", FITS)


def test_two_dumps_are_two_sides_of_a_box(served: Served, look: Look, tmp_path: Path) -> None:
    mine, golden = chain(shift=2, scale=3), chain()
    golden.insert(4, ("Net/layers.0-Block/Gelu-op91", {OUT: np.arange(6, dtype=np.float32)}))
    mine.insert(5, ("Net/Extra-op90", {OUT: np.arange(5, dtype=np.float32)}))
    sight = look(served(write_dump(tmp_path / "mine", mine), write_dump(tmp_path / "golden", golden)))
    text = sight.go(f"#/graph/{STEP}")
    closed = sight.page.locator(".node:not(.open):not([role=img])")
    assert "≠" in text and sight.page.locator(".golden").count() == closed.count()
    sight.page.locator("#search").fill("extra")
    sight.page.keyboard.press("Enter")
    sight.rest()
    assert "no partner" in sight.page.text_content("a.node.alone")
    sight.page.get_by_role("button", name="close all").click()
    sight.rest()
    assert "+ 1 only in golden" in sight.page.text_content(".stage")
    sight.page.locator(".node.scope", has_text="layers.0-Block").click()
    sight.rest()
    assert "Gelu-op91" in sight.page.text_content(".node.alone[role=img]")


def test_a_dump_that_tells_nothing_of_what_flows(served: Served, look: Look, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    operators = [(f"Net/{kind}-op{at}", {OUT: rng.standard_normal(4)}) for at, kind in enumerate("ABCDE")]
    sight = look(served(write_dump(tmp_path / "dump", operators)))
    assert "execution order" in sight.go(f"#/graph/{STEP}")
    assert nodes(sight) == [f"{kind}-op{at}" for at, kind in enumerate("ABCDE")]
    assert sight.page.locator("path.flow.order").count() == 4


def test_the_way_of_a_nan_is_a_graph_and_a_list(bad: Path, served: Served, look: Look) -> None:
    sight = look(served(bad))
    sight.go("#/nan")
    assert sight.page.locator(".node.way").count() > 1 and sight.page.locator(".flow.red").count() > 0
    assert not sight.page.locator("ol.chain").first.is_visible()
    sight.page.locator("details summary", has_text="as a list").click()
    sight.rest()
    assert sight.page.locator("ol.chain").first.is_visible()


@pytest.mark.parametrize("width", [1280, 420])
def test_the_graph_can_be_used_by_everyone(width: int, bad: Path, axe: str, served: Served, look: Look) -> None:  # noqa: F811
    sight = look(served(bad))
    sight.page.set_viewport_size({"width": width, "height": 800})
    sight.page.evaluate(axe)
    for fragment in (f"#/graph/{STEP}", "#/nan"):
        sight.go(fragment)
        for theme in ("light", "dark"):
            sight.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            assert sight.page.evaluate(VIOLATIONS) == [], (fragment, theme)
        assert sight.page.evaluate("document.documentElement.scrollWidth") <= width
        assert len(nodes(sight)) > 1
