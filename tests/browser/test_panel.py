"""The operator beside a page: it opens from wherever an operator stands, and the keyboard reaches and leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_screens import VIOLATIONS, Look, Served, axe, first_step

__all__ = ["axe"]
PANEL = ".panel"


def opened(dumps: Callable[[str], Path], served: Served, look: Look) -> tuple[Any, str]:
    sight = look(served(dumps("mindspore")))
    return sight, first_step(sight)


def test_it_opens_from_a_row_and_closes(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight, step = opened(dumps, served, look)
    sight.go(f"#/operators/{step}")
    row = sight.page.locator("tr.row").nth(2)
    row.focus()
    sight.page.keyboard.press("Enter")
    sight.rest()
    assert sight.page.locator(PANEL).count() == 1 and f"#/operators/{step}?op=" in sight.page.url
    assert sight.page.evaluate("document.activeElement.className") == "panel"
    url = sight.page.url
    sight.page.reload()
    sight.rest()
    assert sight.page.url == url and sight.page.locator(f"{PANEL} article.tensor").count() > 0
    sight.page.keyboard.press("Escape")
    sight.rest()
    assert sight.page.locator(PANEL).count() == 0 and sight.page.url.endswith(f"#/operators/{step}")


def test_the_focus_goes_back_to_what_opened_it(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight, step = opened(dumps, served, look)
    sight.go(f"#/operators/{step}")
    sight.page.locator("tr.row").nth(2).focus()
    for key in ("Enter", "j", "j", "Escape"):
        sight.page.keyboard.press(key)
        sight.rest()
    assert sight.page.evaluate("document.activeElement.getAttribute('aria-rowindex')") == "4"


def test_keys_walk_inside_of_it(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight, step = opened(dumps, served, look)
    place = step.replace("/", "%2F")
    sight.go(f"#/bytes/{step}?op={step}/0")
    for key, end in (("j", 1), ("j", 2), ("k", 1)):
        sight.page.keyboard.press(key)
        sight.rest()
        assert sight.page.url.endswith(f"#/bytes/{step}?op={place}%2F{end}")


def test_it_opens_from_the_verdict_and_leads_to_its_own_page(
    dumps: Callable[[str], Path], served: Served, look: Look
) -> None:
    sight, _step = opened(dumps, served, look)
    sight.page.locator(".headline h1 a").first.click()
    sight.rest()
    name = sight.page.inner_text(f"{PANEL} h2 >> nth=0")
    assert "Log" in name
    beside = sight.page.locator(f"{PANEL} :is(h2, .source, .operands, figcaption, .commands)").all_inner_texts()
    sight.page.locator(f"{PANEL} .panel-tools a").click()
    sight.rest()
    assert "#/operator/" in sight.page.url and sight.page.inner_text("main h1") == name
    page = sight.page.locator("main :is(h1, h2, .source, .operands, figcaption, .commands)").all_inner_texts()
    assert page == beside and len(page) > 6


def test_it_covers_a_narrow_page(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight, step = opened(dumps, served, look)
    sight.go(f"#/operators/{step}?op={step}/0")
    page, panel = (sight.page.locator(one).bounding_box() for one in ("main", PANEL))
    assert page["x"] + page["width"] <= panel["x"] + 1
    sight.page.locator(".handle").focus()
    sight.page.keyboard.press("ArrowLeft")
    sight.rest()
    assert sight.page.locator(PANEL).bounding_box()["width"] == panel["width"] + 40
    sight.page.set_viewport_size({"width": 420, "height": 800})
    sight.rest()
    assert sight.page.locator(PANEL).bounding_box()["width"] == 420
    assert sight.page.locator(".shown").evaluate("one => one.inert")
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= 420


def test_an_operator_that_is_not_there(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight, step = opened(dumps, served, look)
    assert "no operator of that number" in sight.go(f"#/operators/{step}?op={step}/99999")
    assert sight.go(f"#/operators/{step}?op=0/x") and sight.page.locator(PANEL).count() == 0


def test_both_sides_of_a_pair(moved_dump: Path, golden_dump_folder: Path, served: Served, look: Look) -> None:
    sight = look(served(moved_dump, golden_dump_folder))
    sight.page.locator(".headline h1 a").first.click()
    sight.rest()
    panel = sight.page.locator(PANEL)
    golden = panel.locator("tr.golden").last.locator("td").all_inner_texts()
    mine, between = (
        panel.locator("tbody.operand").last.locator("tr").nth(place).locator("td").all_inner_texts() for place in (1, 3)
    )
    assert float(mine[0]) - float(golden[0]) == pytest.approx(float(between[0]), rel=0.05, abs=1e-3)
    assert panel.locator(".golden-outline").count() > 0 and panel.locator(".differs").count() > 0
    sight.page.locator(f"{PANEL} .sides button").get_by_text("ULP").first.click()
    sight.rest()
    assert panel.locator(".distribution svg").count() > 0 and panel.locator(".map canvas").count() > 0
    box = panel.locator(".map canvas").first.bounding_box()
    sight.page.mouse.move(box["x"] + 3, box["y"] + 3)
    assert "[0, 0]" in panel.locator("output").first.inner_text()


def test_it_can_be_used_by_everyone(
    axe: str, moved_dump: Path, golden_dump_folder: Path, served: Served, look: Look
) -> None:
    sight = look(served(moved_dump, golden_dump_folder))
    sight.page.evaluate(axe)
    step = first_step(sight)
    for width, theme in ((1280, "light"), (1280, "dark"), (420, "light")):
        sight.page.set_viewport_size({"width": width, "height": 800})
        sight.go(f"#/operators/{step}?op={step}/2")
        sight.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert sight.page.evaluate(VIOLATIONS) == [], (width, theme)
