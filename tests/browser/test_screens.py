"""What a person sees: every page of every kind of dump, the same from the server and in a report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.analysis.stat.statistics import tensor_statistics
from msdump.viewing.report_file import write_report
from tests.analysis.exporting.conftest import HOSTILE
from tests.analysis.small_dump import write_dump
from tests.browser.conftest import configuration, run

OUT = ("output", 0)
FRONT_ENDS = ("mindspore", "torch-compiled", "torch-eager", "onnx", "statistics")
Look = Callable[..., Any]
Served = Callable[..., str]


def first_step(sight: Any) -> str:
    """Rank, graph and iteration of the first step, as a fragment has them."""
    href = sight.page.get_attribute("table.plain a", "href")
    return str(href).removeprefix("#/operators/")


def screens(sight: Any) -> dict[str, str]:
    """Text of each page that the links at the top lead to."""
    links = sight.page.eval_on_selector_all(".top nav a", "all => all.map(one => one.getAttribute('href'))")
    return {str(link): sight.go(str(link)) for link in links}


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_every_screen_of_every_front_end(name: str, dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps(name)))
    assert "first NaN" in sight.page.inner_text(".verdict")
    step = first_step(sight)
    for fragment, text in screens(sight).items():
        assert len(text) > 100, fragment
        sight.go(fragment)
        sight.page.reload()
        assert sight.rest().splitlines() == text.splitlines(), fragment
    sight.go(f"#/operators/{step}")
    rows = sight.page.locator("tr.row").count()
    assert rows > 1
    for number in range(min(rows, 4)):
        text = sight.go(f"#/operator/{step}/{number}")
        assert "zero" in text and sight.page.locator("tbody.operand").count() > 0
        # Statistics alone have no pictures.
        assert (sight.page.locator("article.tensor").count() > 0) == (name != "statistics")
    if name != "statistics":
        assert sight.page.locator(".heatmap canvas").count() > 0
        sight.page.locator("a.elements-link").first.click()
        assert "copy Python" in sight.rest() and sight.page.locator(".elements td").count() > 0


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_a_report_shows_what_the_server_shows(
    name: str, dumps: Callable[[str], Path], served: Served, look: Look, tmp_path: Path
) -> None:
    dump = dumps(name)
    write_report(Contents(dump, measurements=Measurements(has_exponents=True)), tmp_path / "r.html")
    server, report = look(served(dump)), look((tmp_path / "r.html").as_uri(), is_offline=True)
    assert screens(server) == screens(report)
    step = first_step_of(dump)
    for number in range(3):
        facts = [facts_of(sight, f"#/operator/{step}/{number}") for sight in (server, report)]
        assert facts[0] == facts[1] and len(facts[0]) > 2


def facts_of(sight: Any, fragment: str) -> list[str]:
    """What is told of an operator without its elements, which a report has not."""
    sight.go(fragment)
    parts = "header.operator, .operands, .attributes, .readers, figure.exponents, .commands"
    return list(sight.page.locator(parts).all_inner_texts())


def first_step_of(dump: Path) -> str:
    from msdump.viewing.pages import Pages

    paths = Pages(Contents(dump)).paths()
    return next(path for path in paths if path.startswith("step/")).removeprefix("step/")


@pytest.fixture(scope="session")
def axe(sources: Path) -> str:
    """A script that judges whether a page can be used by everyone."""
    return (sources / "node_modules/axe-core/axe.min.js").read_text()


def test_pages_can_be_used_by_everyone(
    axe: str, moved_dump: Path, golden_dump_folder: Path, nan_dump: Path, served: Served, look: Look
) -> None:
    for dumps in ((nan_dump,), (moved_dump, golden_dump_folder)):
        sight = look(served(*dumps))
        sight.page.evaluate(axe)
        step = first_step(sight)
        own = [f"#/operator/{step}/0", f"#/tensor/{step}/1"]
        for fragment in (*screens(sight), *own):
            for theme in ("light", "dark"):
                sight.go(fragment)
                sight.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
                assert sight.page.evaluate(VIOLATIONS) == [], (fragment, theme)


VIOLATIONS = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
    violations.flatMap(({id, nodes}) => nodes.map(({html}) => `${id}: ${html.slice(0, 200)}`)))"""


SAYS_ALL_IS_WELL = ".verdict.good, .cards .ok, .health.ok, .fits, .fill-ok:not([width='0'])"


def test_no_page_judges_what_nothing_was_measured_of(
    dumps: Callable[[str], Path], served: Served, look: Look, tmp_path: Path
) -> None:
    dump = dumps("hashes")
    write_report(Contents(dump), tmp_path / "r.html")
    for sight in (look(served(dump)), look((tmp_path / "r.html").as_uri(), is_offline=True)):
        step = first_step(sight)
        pages = [*screens(sight), f"#/operator/{step}/0", f"#/overview?op={step}%2F0", "#/overview?by=health"]
        for fragment in pages:
            text = sight.go(fragment)
            assert not re.search("[✔✓]", text), fragment
            assert sight.page.locator(SAYS_ALL_IS_WELL).count() == 0, fragment
        assert "have no numbers to judge by" in sight.go("#/nan")
        assert "nothing to judge by" in sight.go(f"#/overflow/{step}")


def test_minimum_and_maximum_judge_what_overflows(served: Served, look: Look, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    dump = configuration(folder, "statistic")
    (folder / "train.py").write_text("import torch\n\n(torch.tensor([1e6, 2e-9]) * 3).log()\n")
    run(folder, "-m", "msdump", "run", "--config", "dump.json", "--torch-eager", "train.py")
    sight = look(served(dump))
    text = sight.go(f"#/overflow/{first_step(sight)}")
    assert "5 of 6 tensors overflow: float16" in text and "underflow is not known" in text and "✔" not in text
    assert sight.page.locator("tr.row").first.locator("td").nth(6).inner_text() == "-4"  # 1e6, the limit is below 2^16
    sight.page.get_by_role("button", name="bfloat16").click()
    text = sight.rest()
    assert "0 of 6 tensors overflow: bfloat16" in text and "✔" not in text


def test_the_headline_of_a_comparison_is_red_where_dumps_differ_alone(
    served: Served, look: Look, tmp_path: Path
) -> None:
    values = np.arange(6, dtype=np.float32)
    mine, same, other = (
        write_dump(tmp_path / name, [("Net/Add-op0", {OUT: values + shift})])
        for name, shift in (("mine", 0), ("same", 0), ("other", 1))
    )
    for golden, looks in ((same, "verdict good"), (other, "verdict bad")):
        sight = look(served(mine, golden))
        sight.go(f"#/compare/{first_step(sight)}")
        assert sight.page.get_attribute("main .verdict", "class") == looks


def test_numbers_are_those_of_the_dump(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    dump = dumps("mindspore")
    sight = look(served(dump))
    rows = tensor_statistics(dump).rows
    step = rows[0].step
    sight.go(f"#/operator/{step.rank_id}/{step.graph_id}/{step.iteration}/{rows[0].number}")
    own = [row for row in rows if (row.step, row.number) == (step, rows[0].number)]
    cards = sight.page.locator("tbody.operand")
    assert cards.count() == len(own) == sight.page.locator("article.tensor").count()
    for place, row in enumerate(own):
        for name in ("max", "min", "avg", "l2norm", "nan", "zero"):
            text = cards.nth(place).locator(f"[data-value={name}]").inner_text()
            assert float(text) == pytest.approx(float(getattr(row.numbers, name)), rel=1e-3, nan_ok=True)


def test_two_dumps(moved_dump: Path, golden_dump_folder: Path, served: Served, look: Look) -> None:
    sight = look(served(moved_dump, golden_dump_folder))
    assert "first" in sight.page.inner_text(".verdict")
    step = first_step(sight)
    assert "MatMul" in sight.go(f"#/compare/{step}") and sight.page.locator(".chart canvas").count() == 1
    sight.page.locator("tr.row").first.click()
    sight.rest()
    sight.page.locator("a.elements-link").last.click()
    sight.rest()
    pictures = set()
    for _ in range(5):
        sight.page.keyboard.press("d")
        sight.rest()
        pictures.add(re.search(r"what=(\w+)", sight.page.url).group(1) if "what=" in sight.page.url else "mine")  # type: ignore[union-attr]
    assert pictures == {"mine", "golden", "difference", "relative", "ulp"}


# Answers as they come while a server measures, then those that it ends with, the last ones slowly.
EARLY_THEN_LATE = """
const ask = window.fetch;
window.asked = {progress: 0, overview: 0};
window.fetch = async (address, options) => {
    const name = String(address).split("/").pop();
    const response = await ask(address, options);
    if (!(name in asked)) return response;
    const told = await response.json();
    asked[name] += 1;
    if (name === "progress" && asked[name] === 1) told.stage = "measuring";
    else if (name === "progress") told.version += 1;
    else if (asked[name] === 1) told.verdict = {kind: "unknown", text: "early", at: null};
    else await new Promise(resolve => setTimeout(resolve, 800));
    return new Response(JSON.stringify(told));
};
"""


def test_old_answers_do_not_pass_for_new_ones(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    """The page says that it waits while the last answers are on their way from a server that is done."""
    url = served(dumps("mindspore"))
    look(url)  # the server is done
    sight = look(url, before=lambda page: page.add_init_script(EARLY_THEN_LATE))
    assert sight.page.evaluate("asked.overview") == 2
    assert "first NaN" in sight.page.inner_text(".verdict")


def test_operators_are_paired_by_hand(served: Served, look: Look, tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    mine, golden = (
        write_dump(tmp_path / side, [("Net/Add-op0", {OUT: values}), (f"Net/{name}-op1", {OUT: values + shift})])
        for side, name, shift in (("mine", "Mul", 0), ("golden", "Div", 1))
    )
    mapping = tmp_path / "pairs.json"
    sight = look(served(mine, golden, mapping=str(mapping), has_actions=True))
    step = first_step(sight)
    sight.go(f"#/compare/{step}")
    sight.page.locator("details.pairing summary").click()
    for place, name in enumerate(("Mul", "Div")):
        sight.page.locator("details.pairing select").nth(place).select_option(index=1)
        sight.rest()
        assert name in sight.page.locator("details.pairing select").nth(place).input_value()
    sight.page.get_by_role("button", name="pair").click()
    sight.page.locator("tr.row", has_text="differs").wait_for(timeout=20_000)
    assert "1 of 2" in sight.page.inner_text("main")
    assert "Net_Mul" in mapping.read_text() or "Net/Mul" in mapping.read_text()
    assert "differs" in sight.page.inner_text("main")


def test_elements(series: Path, served: Served, look: Look) -> None:
    sight = look(served(series))
    text = sight.go("#/tensor/1/0/2/0")
    assert "a cell is 3 × 2 elements" in text and "■ NaN: 1 cells" in text
    sight.page.keyboard.press("[")
    assert "NaN: 1" not in sight.rest() and sight.page.url.endswith("#/tensor/1/0/1/0")
    sight.page.locator("#index").fill("777, 330:340")
    sight.page.keyboard.press("Enter")
    assert "1 × 10" in sight.rest() and sight.page.locator(".lineplot").count() == 1
    url = sight.page.url
    sight.page.reload()
    assert "1 × 10" in sight.rest() and sight.page.url == url
    sight.page.locator("#index").fill("one")
    with sight.page.expect_console_message(lambda message: "400" in message.text):
        sight.page.keyboard.press("Enter")
    sight.page.wait_for_selector("[role=alert]")
    assert "expected a number or a range" in sight.page.inner_text("[role=alert]")
    # The refusal is an answer of the server, which browsers log.
    sight.problems[:] = [one for one in sight.problems if "400" not in one]


def test_zooming_leads_to_the_elements(series: Path, served: Served, look: Look) -> None:
    sight = look(served(series))
    sight.go("#/tensor/1/0/2/0")
    box = sight.page.locator(".heatmap canvas").bounding_box()
    place = {"x": box["width"] * 333 / 1000, "y": box["height"] * 777.5 / 1500}
    sight.page.locator(".heatmap canvas").click(position=place)
    text = sight.rest()
    assert "index=" in sight.page.url and "a cell is" not in text and "■ NaN: 1 cells" in text


def test_keys(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("mindspore")))
    step = first_step(sight)
    sight.go(f"#/operator/{step}/0")
    for key, number in (("j", 1), ("j", 2), ("k", 1)):
        sight.page.keyboard.press(key)
        sight.rest()
        assert sight.page.url.endswith(f"#/operator/{step}/{number}")
    sight.page.keyboard.press("n")
    assert "not finite" in sight.rest()
    sight.page.keyboard.press("Escape")
    sight.rest()
    assert "#/operators/" in sight.page.url
    sight.page.keyboard.press("/")
    sight.page.wait_for_timeout(200)
    sight.page.keyboard.type("log")
    assert 0 < sight.page.locator("tr.row").count() < 10 and "q=log" in sight.page.url
    sight.page.locator("h1, .title").first.click()
    sight.page.keyboard.press(".")
    sight.rest()
    assert sight.page.evaluate("document.documentElement.dataset.theme") in ("dark", "light")


def test_keys_between_pages(series: Path, served: Served, look: Look) -> None:
    sight = look(served(series))
    step = "1/0/1"

    def after(key: str) -> str:
        sight.page.keyboard.press(key)
        sight.rest()
        return str(sight.page.url.partition("#")[2])

    sight.go(f"#/operator/{step}/0")
    assert after("h").startswith("/tensor/1/0/1/")
    assert after("]").startswith("/tensor/1/0/2/")
    assert after("Escape") == "/operator/1/0/2/0"
    assert after("[") == "/operator/1/0/1/0"
    assert after("{") == "/operator/0/0/1/0"
    assert after("}") == "/operator/1/0/1/0"
    assert after("g") == "/graph/1/0/1"
    assert after("t") == "/operators/1/0/1"
    sight.page.locator("tr.row").nth(0).focus()
    assert after("Enter") == "/operators/1/0/1?op=1%2F0%2F1%2F0"
    assert after("b").startswith("/operators/1/0/1?b=1%2F0%2F1%2F0&")
    sight.page.locator("nav[aria-label=pages] a").first.click()
    assert "★" in sight.rest() and "b=1" in sight.page.url
    sight.page.locator(".bookmarks a").click()
    sight.rest()
    assert "b=" not in after("b") and sight.page.locator(".bookmarks").count() == 0
    sight.page.keyboard.press("?")
    sight.rest()
    assert sight.page.locator("[role=dialog] kbd").count() > 15
    after("?")
    assert sight.page.locator("[role=dialog]").count() == 0


def test_keys_follow_what_flows(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("mindspore")))
    step = first_step(sight)
    sight.go(f"#/operator/{step}/0")
    number = 0
    while sight.page.locator("h2", has_text="read by").count() == 0:
        number += 1
        sight.go(f"#/operator/{step}/{number}")
    sight.page.keyboard.press("o")
    sight.rest()
    assert not sight.page.url.endswith(f"/{number}")
    sight.page.keyboard.press("i")
    sight.rest()
    assert "/operator/" in sight.page.url


def test_bytes_are_a_treemap(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("mindspore")))
    step = first_step(sight)
    sight.go(f"#/bytes/{step}")
    assert sight.page.locator("svg.treemap a").count() > 3
    sight.page.locator("svg.treemap a g:not(.scope)").first.click()
    sight.rest()
    assert "op=" in sight.page.url or "q=" in sight.page.url


def test_chinese(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("mindspore")), language="zh-CN")
    assert "概览" in sight.page.inner_text("nav") and "Overview" not in sight.page.inner_text("nav")
    sight.page.get_by_role("button", name="English").click()
    sight.rest()
    assert "Overview" in sight.page.inner_text("nav")


def test_names_of_strangers_stay_text(hostile_dump: Path, served: Served, look: Look, tmp_path: Path) -> None:
    write_report(Contents(hostile_dump), tmp_path / "r.html")
    for url in (served(hostile_dump), (tmp_path / "r.html").as_uri()):
        sight = look(url)
        step = first_step(sight)
        texts = "\n".join(screens(sight).values())
        texts += "".join(sight.go(f"#/operator/{step}/{number}") for number in range(len(HOSTILE)))
        assert "<img src=x onerror=alert(1)>" in texts and "script>" in texts
        assert sight.page.locator("img").count() == 0
        assert sight.page.eval_on_selector_all("a", "all => all.every(one => one.protocol !== 'javascript:')")


def test_damaged_files_are_on_the_first_page(series: Path, served: Served, look: Look) -> None:
    broken = min(series.rglob("*.output.0.*"))
    broken.write_bytes(b"no tensor")
    sight = look(served(series))
    assert broken.name in sight.page.inner_text("main") and "damaged files (1)" in sight.page.inner_text("main")


def test_answers_of_the_server_are_those_of_the_page(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    sight = look(served(dumps("mindspore")))
    overview = json.loads(sight.page.evaluate("fetch('api/overview').then(one => one.text())"))
    assert overview["verdict"]["text"] in sight.page.inner_text(".verdict")
    assert sight.page.evaluate("fetch('api/progress', {method: 'POST'}).then(one => one.status)") == 405
    sight.problems[:] = [one for one in sight.problems if "405" not in one]
    assert "token" not in sight.page.url


def test_names_on_rectangles_of_bytes_can_be_read(dumps: Callable[[str], Path], served: Served, look: Look) -> None:
    """Names are dark on what is well, and light on what is not; in dark the other way round."""
    sight = look(served(dumps("mindspore")))
    sight.go(f"#/bytes/{first_step(sight)}")
    for theme in ("light", "dark"):
        sight.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        for kind in ("made", "ok"):
            assert sight.page.evaluate(CONTRAST, f".treemap .fill-{kind} + text") > 4.5, (theme, kind)


CONTRAST = """selector => {
    const text = document.querySelector(selector);
    const light = (node) => {
        const parts = getComputedStyle(node).fill.match(/[0-9.]+/g).slice(0, 3).map((one) => one / 255);
        const [red, green, blue] = parts.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    const [one, other] = [light(text), light(text.previousElementSibling)];
    return Math.max(one, other) / Math.min(one, other);
}"""
