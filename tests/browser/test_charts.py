"""Charts lead to rows and operators, and the field of Ctrl+K leads everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.analysis.small_dump import floats, write_dump
from tests.browser.test_screens import VIOLATIONS, Look, Served, axe, first_step

__all__ = ["axe"]
OUT = ("output", 0)


def rows_of(sight: Any) -> list[str]:
    return list(sight.page.locator("tr.row td:first-child").all_inner_texts())


def drag(sight: Any, begin: float, end: float) -> None:
    """Over a chart, from one share of its width to another."""
    box = sight.page.locator(".chart .u-over").first.bounding_box()
    height = box["y"] + box["height"] / 2
    sight.page.mouse.move(box["x"] + box["width"] * begin, height)
    sight.page.mouse.down()
    sight.page.mouse.move(box["x"] + box["width"] * end, height, steps=5)
    sight.page.mouse.up()
    sight.rest()


def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Operators of which every fourth differs; the last one has a shape of its own."""
    values = np.linspace(1, 2, 64, dtype=np.float32)
    sides = []
    for side in ("mine", "golden"):
        shift = {number: 1.1 if side == "mine" and number % 4 == 0 else 1.0 for number in range(40)}
        operators = [(f"Net/Add-op{number}", {OUT: values * np.float32(shift[number])}) for number in range(40)]
        operators.append(("Net/Odd-op40", {OUT: floats(*range(3 if side == "mine" else 5))}))
        sides.append(write_dump(tmp_path / side, operators))
    return sides[0], sides[1]


def test_the_comparison_begins_with_what_differs(tmp_path: Path, served: Served, look: Look) -> None:
    sight = look(served(*pair(tmp_path)))
    sight.go(f"#/compare/{first_step(sight)}")
    differing = [str(number) for number in range(0, 41, 4)]
    assert rows_of(sight) == differing
    sight.page.get_by_label("bad only").uncheck()
    sight.rest()
    assert rows_of(sight)[:13] == [*differing, "1", "2"]
    assert "bad=0" in sight.page.url


def test_a_range_of_the_chart_filters_the_table(tmp_path: Path, served: Served, look: Look) -> None:
    sight = look(served(*pair(tmp_path)))
    sight.go(f"#/compare/{first_step(sight)}")
    drag(sight, 0.25, 0.75)
    first, last = map(int, re.search(r"range=(\d+)-(\d+)", sight.page.url).groups())  # type: ignore[union-attr]
    assert 8 <= first <= 12 and 28 <= last <= 32
    assert rows_of(sight) == [str(number) for number in range(0, 41, 4) if first <= number <= last]
    sight.page.reload()
    sight.rest()
    assert sight.page.locator(".u-select").first.bounding_box()["width"] > 100
    sight.page.get_by_role("button", name="✕").first.click()
    sight.rest()
    assert "range" not in sight.page.url and len(rows_of(sight)) == 11


def test_a_point_of_the_chart_opens_the_operator(tmp_path: Path, served: Served, look: Look) -> None:
    sight = look(served(*pair(tmp_path)))
    step = first_step(sight)
    sight.go(f"#/compare/{step}")
    box = sight.page.locator(".chart .u-over").first.bounding_box()
    sight.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    sight.rest()
    number = int(re.search(r"op=.*%2F(\d+)", sight.page.url).group(1))  # type: ignore[union-attr]
    assert 18 <= number <= 22 and f"op{number}" in sight.page.inner_text(".panel h2 >> nth=0")


def test_rows_of_a_trend_become_lines(series: Path, served: Served, look: Look) -> None:
    sight = look(served(series))
    sight.go("#/trend/1/0/2")
    charts = sight.page.locator(".picked .chart canvas")
    assert charts.count() == 0
    sight.page.locator("tr.row").first.focus()
    sight.page.keyboard.press("Enter")
    sight.rest()
    assert charts.count() == 1 and "lines=0" in sight.page.url and "op=" not in sight.page.url
    sight.page.locator("tr.row").first.locator(".cells rect").nth(1).click()
    sight.page.locator(".panel article.one").wait_for()
    assert sight.page.url.endswith("op=1%2F0%2F1%2F0")
    sight.page.get_by_label("one colour scale").uncheck()
    sight.rest()
    assert "scale=row" in sight.page.url and sight.page.locator(".cells-legend").count() == 0


def test_rows_fill_the_room_that_a_chart_leaves(served: Served, look: Look, tmp_path: Path) -> None:
    for iteration in range(2):
        operators = [(f"Net/Add-op{number}", {OUT: floats(number, iteration)}) for number in range(100)]
        write_dump(tmp_path / "dump", operators, iteration=iteration)
    sight = look(served(tmp_path / "dump"))
    sight.go("#/trend/0/0/1?lines=0")
    assert sight.page.locator(".picked .chart canvas").count() == 1
    sight.page.get_by_role("button", name="no lines").click()
    sight.rest()
    boxes = [sight.page.locator(place).last.bounding_box() for place in (".rows", "tr.row")]
    room, last = (box["y"] + box["height"] for box in boxes)
    # Some rows more than are in sight: scrolling shows them at once.
    assert last - room > 7 * 26 and sight.page.locator("tr.row").count() < 100


def test_the_keyboard_goes_everywhere(dumps: Callable[[str], Path], served: Served, look: Look, axe: str) -> None:
    sight = look(served(dumps("mindspore")))
    step = first_step(sight)
    sight.page.keyboard.press("Control+k")
    sight.page.locator("dialog[open]").wait_for()
    assert sight.page.evaluate("document.activeElement.getAttribute('role')") == "combobox"
    sight.page.evaluate(axe)
    assert sight.page.evaluate(VIOLATIONS) == []
    sight.page.keyboard.type("page source")
    sight.page.keyboard.press("Enter")
    sight.rest()
    assert "#/lines/" in sight.page.url and sight.page.locator("dialog").count() == 0
    sight.page.keyboard.press("Control+k")
    sight.page.wait_for_function("() => document.querySelectorAll('[role=option]').length > 15")
    sight.page.keyboard.type("operator log-op")
    sight.page.keyboard.press("ArrowDown")
    sight.page.keyboard.press("ArrowUp")
    sight.page.keyboard.press("Enter")
    sight.rest()
    assert f"#/lines/{step}?op=" in sight.page.url and "Log-op" in sight.page.inner_text(".panel h2 >> nth=0")
    url = sight.page.url
    sight.page.keyboard.press("Control+k")
    sight.page.locator("dialog[open]").wait_for()
    sight.page.keyboard.press("Escape")
    sight.page.locator("dialog").wait_for(state="detached")
    sight.rest()
    assert sight.page.url == url and sight.page.locator("dialog").count() == 0


def test_print_has_what_the_page_has(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("mindspore")))
    step = first_step(sight)
    sight.go(f"#/operator/{step}/2")
    sight.page.emulate_media(media="print")
    assert not sight.page.locator(".top nav").is_visible() and not sight.page.locator("footer").is_visible()
    main = sight.page.locator("main")
    assert main.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
