"""The operator beside a page: it opens from wherever an operator stands, and the keyboard reaches and leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.test_screens import Look, Served, first_step

PANEL = "aside.panel"


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
    sight.page.locator(".verdict a.name").first.click()
    sight.rest()
    name = sight.page.inner_text(f"{PANEL} h2 >> nth=0")
    assert "Log" in name
    beside = sight.page.locator(f"{PANEL} article.one section").all_inner_texts()
    sight.page.locator(f"{PANEL} .panel-tools a").click()
    sight.rest()
    assert "#/operator/" in sight.page.url and sight.page.inner_text("main h1") == name
    assert sight.page.locator("main article.one section").all_inner_texts() == beside


def test_it_covers_a_narrow_page(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight, step = opened(dumps, served, look)
    sight.go(f"#/operators/{step}?op={step}/0")
    page, panel = (sight.page.locator(one).bounding_box() for one in ("main", PANEL))
    assert page["x"] + page["width"] <= panel["x"] + 1
    sight.page.locator(".handle").focus()
    sight.page.keyboard.press("ArrowLeft")
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
