"""The first page in a real browser: the map, what can be done with it, and the controls that choose a step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
BAD_ITERATION = 12
Look = Callable[..., Any]
Served = Callable[..., str]


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty iterations of two ranks, in three graphs; a NaN in one of them."""
    folder = tmp_path_factory.mktemp("training") / "dump"
    for rank in range(2):
        for iteration in range(20):
            is_bad = (rank, iteration) == (1, BAD_ITERATION)
            layer = [
                (f"Default/l{number}-Dense/MatMul-op{number}", {OUT: floats(number, iteration)}) for number in range(5)
            ]
            layer.append(("Default/l2-Dense/Log-op9", {IN: floats(1), OUT: floats(np.nan if is_bad else 0.5)}))
            layer.append(("Default/Loss-op10", {OUT: np.array(3.0 - iteration / 10, np.float32)}))
            write_dump(folder, layer, graph=0, iteration=iteration, rank=rank)
            backward = [
                (f"Gradients/Default/l{number}-Dense/MatMul-op{number}", {OUT: floats(number, 2)})
                for number in range(5)
            ]
            write_dump(folder, backward, graph=1, iteration=iteration, rank=rank)
            write_dump(
                folder,
                [("Default/optimizer-SGD/Sub-op0", {OUT: floats(1, 2)})],
                graph=2,
                iteration=iteration,
                rank=rank,
            )
    return folder


def cell(sight: Any, row: int, column: int, columns: int = 20) -> tuple[float, float]:
    """Where a cell of the map is, by the pixels that its layout has."""
    box = sight.page.locator(".picture").bounding_box()
    left, right = 236, 14
    plot = box["width"] - left - right
    return box["x"] + left + (column + 0.5) * plot / columns, box["y"] + row


def settled(sight: Any) -> None:
    sight.page.wait_for_selector(".legend .key, .legend .ramp")
    sight.page.wait_for_timeout(400)


def rows_with_cells(sight: Any, column: int) -> list[float]:
    """Heights at which hovering a column tells of a cell."""
    found = []
    height = sight.page.locator(".picture").bounding_box()["height"]
    for y in range(5, int(height), 12):
        sight.page.mouse.move(*cell(sight, y, column))
        if sight.page.locator(".tip b").count() and "iteration" in sight.page.inner_text(".tip"):
            found.append(y)
    return found


def test_one_click_leads_from_the_first_page_to_the_nan(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    settled(sight)
    assert "first NaN: Default/l2-Dense/Log-op9" in sight.page.inner_text(".headline h1")
    assert "iteration 12" in sight.page.inner_text(".headline h1")
    sight.page.locator(".headline h1 a").click()
    assert "Default/l2-Dense/Log-op9" in sight.rest() and f"#/overview?op=1%2F0%2F{BAD_ITERATION}%2F" in sight.page.url


def test_the_answer_is_in_the_language_of_the_browser(
    training: Path, served: Served, look: Look, tmp_path: Path
) -> None:
    from msdump.analysis.overview.contents import Contents
    from msdump.viewing.report_file import write_report

    report = write_report(Contents(training), tmp_path / "report.html").path
    for address in (served(training), report.as_uri()):
        sight = look(address, language="zh-CN")
        settled(sight)
        assert "第一个 NaN：Default/l2-Dense/Log-op9" in sight.page.inner_text(".headline h1")
        sight.page.locator(".headline summary").click()
        details = sight.page.inner_text(".headline pre")
        assert "rank 1，图 0，迭代 12：由有限的输入产生" in details
        assert "输出 0：float32 [1]，1 个 NaN，0 个 Inf" in details


def test_hovering_tells_and_clicking_opens(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    settled(sight)
    tips = {}
    for y in rows_with_cells(sight, BAD_ITERATION):
        sight.page.mouse.move(*cell(sight, y, BAD_ITERATION))
        tips[y] = sight.page.inner_text(".tip")
    (bad,) = {text: y for y, text in tips.items() if "not finite made here" in text}.items()
    assert "Default/l2-Dense/Log-op9" in bad[0] and "NaN and Inf" in bad[0]
    sight.page.mouse.click(*cell(sight, bad[1], BAD_ITERATION))
    sight.page.wait_for_url("**#/overview?op=1%2F0%2F12%2F*")
    assert "Default/l2-Dense/Log-op9" in sight.rest()


def test_a_range_of_iterations_is_picked_by_dragging_and_kept_in_the_address(
    training: Path, served: Served, look: Look
) -> None:
    sight = look(served(training))
    settled(sight)
    sight.page.mouse.move(*cell(sight, 20, 4))
    sight.page.mouse.down()
    sight.page.mouse.move(*cell(sight, 20, 9), steps=4)
    sight.page.mouse.up()
    sight.page.wait_for_url("**cols=4-9")
    sight.page.reload()
    sight.rest()
    settled(sight)
    sight.page.mouse.move(*cell(sight, 20, 0, columns=6))
    assert "iteration 4" in sight.page.inner_text(".tip")
    sight.page.get_by_role("button", name="show all").click()
    sight.page.wait_for_function("() => !location.hash.includes('cols')")


def test_the_wheel_zooms_with_ctrl_and_scrolls_without(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    box = sight.page.locator(".map canvas").last.bounding_box()
    sight.page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.6)
    before = sight.page.url
    sight.page.mouse.wheel(0, -120)
    sight.rest()
    assert sight.page.url == before
    sight.page.keyboard.down("Control")
    sight.page.mouse.wheel(0, -120)
    sight.page.wait_for_function("() => /[?&]cols=/.test(location.hash)")
    sight.page.mouse.wheel(0, 600)
    sight.page.mouse.wheel(0, 600)
    sight.page.wait_for_function("() => !/[?&]cols=/.test(location.hash)")


def test_keys_walk_over_the_cells_and_say_what_they_are(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    settled(sight)
    sight.page.locator(".picture").focus()
    sight.page.keyboard.press("ArrowDown")  # begins at the first bad cell
    said = sight.page.inner_text(".picture [role=status]")
    assert "Log-op9" in said and f"iteration {BAD_ITERATION}" in said and "not finite made here" in said
    sight.page.keyboard.press("ArrowLeft")
    sight.rest()
    assert f"iteration {BAD_ITERATION - 1}" in sight.page.inner_text(".picture [role=status]")
    sight.page.keyboard.press("ArrowRight")
    sight.page.keyboard.press("Enter")
    sight.page.wait_for_url("**#/overview?op=1%2F0%2F12%2F*")


def test_colours_and_ranks_stand_in_the_address(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    settled(sight)
    colour, rank = (sight.page.locator(".map select").nth(number) for number in range(2))
    assert rank.input_value().startswith("1")
    colour.select_option(label="L2")
    rank.select_option(label="0")
    settled(sight)
    assert "by=l2" in sight.page.url and "rank=0" in sight.page.url
    assert sight.page.locator(".ramp").count() == 1
    sight.page.reload()
    sight.rest()
    assert sight.page.locator(".map select").nth(1).input_value() == "0"


def test_three_controls_choose_a_step(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    sight.page.locator("nav a", has_text="Operators").first.click()
    assert "#/operators/1/0/12" in sight.page.url or sight.rest()
    sight.rest()
    group = sight.page.get_by_role("group", name="Step")
    assert group.get_by_role("button", name="forward").get_attribute("aria-pressed") == "true"
    group.get_by_role("button", name="backward").click()
    assert "Gradients/" in sight.rest() and sight.page.url.endswith("#/operators/1/1/12")
    group.get_by_role("button", name="iteration before").click()
    sight.rest()
    assert sight.page.url.endswith("#/operators/1/1/11")
    sight.page.locator(".where-now input").fill("3")
    sight.page.locator(".where-now input").press("Enter")
    sight.rest()
    assert sight.page.url.endswith("#/operators/1/1/3")
    sight.page.locator(".where-now select").first.select_option("0")
    sight.rest()
    assert sight.page.url.endswith("#/operators/0/1/3")
    assert "graph 0" not in sight.page.inner_text(".top")


def test_an_unknown_address_has_a_way_back(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    for fragment in ("#/operators/7/7/7", "#/nonsense", "#/operator/1/0/12/999"):
        sight.go(fragment)
        assert "no such page" in sight.page.inner_text("main")
        sight.page.locator("main a.go").click()
        assert "first NaN" in sight.rest()
    sight.problems[:] = [one for one in sight.problems if "404" not in one]


def test_a_narrow_window_cuts_nothing(training: Path, served: Served, look: Look) -> None:
    sight = look(served(training))
    sight.page.set_viewport_size({"width": 420, "height": 800})
    for fragment in ("#/overview", "#/operators/1/0/12"):
        sight.go(fragment)
        assert sight.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert sight.page.evaluate("(main => main.scrollWidth <= main.clientWidth + 1)(document.querySelector('main'))")
