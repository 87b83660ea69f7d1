"""How fast a viewer is on a large dump, in the system's Chromium: ten tensors for each operator and one of 4 GiB."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commands import seconds_of
from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.timing import scratch
from benchmarks.workers import ROOT
from msdump.formats.sidecars import ORDER_TITLE
from msdump.viewing.index import Index
from msdump.viewing.pages import encoded

SECTION = "Viewer"
IO = (("input", 6), ("output", 4))
KINDS = ("MatMul", "Add", "Reshape", "Softmax", "Mul", "Cast", "Gelu", "LayerNorm", "Sub", "Div")
RESTS = """() => document.querySelector('.frame')?.dataset.place === location.hash
    && !document.querySelector('[aria-busy=true]')"""
# Milliseconds from a change to the table that shows it, laid out.
TIMED = """() => new Promise(done => {
    const began = performance.now();
    new MutationObserver((_, observer) => {
        observer.disconnect();
        document.body.offsetHeight;
        done(performance.now() - began);
    }).observe(document.querySelector('tbody'), {childList: true, subtree: true, characterData: true});
    CHANGE;
})"""
SCROLL = "document.querySelector('.rows').scrollTop = {}"
SEARCH = """const field = document.getElementById('search');
    field.value = 'op{}';
    field.dispatchEvent(new Event('input'))"""
LARGE = """async () => {
    const began = performance.now();
    await (await fetch('api/picture/0/0/0/NUMBER')).arrayBuffer();
    return performance.now() - began;
}"""


def make_dump(folder: Path, operators: int, has_large: bool) -> None:
    """Small tensors, as many as there are; the large one is a hole in a file, of zeros."""
    step = folder / "rank_0" / "Net" / "0" / "0"
    step.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(operators):
        scope = f"MatMul.Default_network_layer{number // 50}_MatMul-op{number}"
        name = f"{scope}.{number}.0.{1_700_000_000_000_000 + number}"
        for io, slots in IO:
            for slot in range(slots):
                np.save(step / f"{name}.{io}.{slot}.DefaultFormat.npy", rng.standard_normal((4, 8)).astype(np.float32))
    if has_large:
        large = step / f"Large.Default_network_Large-op0.{operators}.0.1800000000000000.output.0.DefaultFormat.npy"
        with open(large, "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 15, 1 << 15)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + (4 << 30))


def make_graph(folder: Path, operators: int) -> None:
    """Statistics of layers of 200 operators, each of which reads the one before and one of some before that."""
    step, order = folder / "rank_0" / "Net" / "0" / "0", folder / "rank_0" / "execution_order"
    step.mkdir(parents=True)
    order.mkdir()
    titles = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape"
    rows, names = [f"{titles},Max Value,Min Value,L2 Norm Value"], [ORDER_TITLE]
    for number in range(operators):
        kind = KINDS[number % len(KINDS)]
        scope = f"Default/net/layers.{number // 200}-Block/{('attention', 'mlp')[number % 200 // 100]}"
        names.append(f"{scope}/{kind}-op{number}")
        reads = [one for one in (number - 1, number - 1 - number % 7) if one >= 0]
        tensors = [*(("input", slot, one) for slot, one in enumerate(reads)), ("output", 0, number)]
        for io, slot, maker in tensors:
            about = (
                f'{kind},{kind}-op{number},0,0,{1_700_000_000_000_000 + len(rows)},{io},{slot},4096,float32,"(32,32)"'
            )
            rows.append(f"{about},{maker + 0.5},-{maker + 1},{maker + 2}")
    (step / "statistic.csv").write_text("\n".join(rows) + "\n")
    (order / "ms_execution_order_graph_0.csv").write_text("\n".join(names) + "\n")


# Frames a second while the pointer crosses the map: two moves in each frame, as fast mice make them.
HOVER = """() => new Promise(done => {
    const picture = document.querySelector('.picture');
    const box = picture.getBoundingClientRect();
    const times = [];
    const frame = now => {
        times.push(now);
        for (let move = 0; move < 2; move += 1) {
            const share = ((2 * times.length + move) % 97) / 97;
            const clientX = box.left + 250 + share * (box.width - 270);
            const clientY = box.top + 200 + share * (box.height - 260);
            picture.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX, clientY}));
        }
        if (times.length < 91) requestAnimationFrame(frame);
        else done(1000 * (times.length - 1) / (times.at(-1) - times[0]));
    };
    requestAnimationFrame(frame);
})"""
# Milliseconds of a zoom: all cells are pooled again and drawn.
ZOOM = """() => new Promise(done => {
    const began = performance.now();
    [...document.querySelectorAll('.map [role=group] button')].at(BUTTON).click();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""
MAP_ITERATIONS, REPEATED = 3, 100


def make_statistics(folder: Path, operators: int, iterations: int) -> None:
    """Statistics alone, of one output for each operator and iteration; the last one has a NaN."""
    columns = (
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value"
    )
    head = f"{columns},Count,Negative Zero Count,Positive Zero Count,NaN Count,Negative Inf Count,Positive Inf Count"
    head += ",Zero Count,L2Norm Value"
    rng = np.random.default_rng(0)
    for iteration in range(iterations):
        step = folder / "rank_0" / "Net" / "0" / str(iteration)
        step.mkdir(parents=True)
        sizes = rng.random(operators) + 0.5
        rows = [head]
        for number, size in enumerate(sizes):
            part = ("Default", "Gradients/Default", "Default/optimizer-Adam")[3 * number // operators]
            nan = int((number, iteration) == (operators - 1, iterations - 1))
            rows.append(
                f"MatMul,{part}/layer{number // 20}-Dense/MatMul-op{number},0,0,{iteration},output,0,128,float32,"
                f'"(4, 8)",{size:.6g},{-size:.6g},0.1,32,16,16,{nan},0,0,0,{4 * size:.6g}'
            )
        (step / "statistic.csv").write_text("\n".join(rows) + "\n")


def widen(cache: Path) -> None:
    """Make the cells of the map in the one index of a cache those of REPEATED times as many iterations.

    The map's answers are what the page draws; to measure three million tensors for them would take minutes.
    """
    (path,) = (cache / "msdump" / "index").glob("*.sqlite")
    with Index(path) as index:
        answers = {name: json.loads(gzip.decompress(index.answer(name) or b"")) for name in index.paths()}
        count = len(answers["map"]["rows"]["name"])
        for name, answer in answers.items():
            if name == "map":
                answer["iterations"] = list(range(len(answer["iterations"]) * REPEATED))
                answer["cells"] = [one * REPEATED for one in answer["cells"]]
                for curves in answer["curves"]:
                    for curve in filter(None, (curves["loss"] and curves["loss"]["values"], curves["largest"])):
                        curve *= REPEATED
            elif name.startswith("map/") and name.count("/") == 1:
                rows = np.array(list(answer["cells"])).reshape(count, -1)
                answer["cells"] = "".join(np.tile(rows, REPEATED).ravel())
            elif name.startswith("map/"):
                logs = np.frombuffer(base64.b64decode(answer["cells"]), "<f4").reshape(count, -1)
                answer["cells"] = base64.b64encode(np.tile(logs, REPEATED).tobytes()).decode()
        packed = [(name, gzip.compress(encoded(answer), 5)) for name, answer in answers.items()]
        index.replace(packed, [], index.progress)


class Server:
    """`msdump view` on a dump, with a cache of its own."""

    def __init__(self, dump: Path, cache: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
        command = [sys.executable, "-m", "msdump", "view", str(dump), "--no-browser"]
        self.began = time.perf_counter()
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def memory(self) -> int:
        """Bytes that the server holds; the process that fills the index is another one and ends."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def _paint(browser: Any, server: Server) -> tuple[Any, float, float]:
    """A page, and seconds to its first sentence: from the start of the command on, and from asking for the page on."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    asked = time.perf_counter()
    page.goto(server.url)
    page.wait_for_selector(".verdict", timeout=600_000)
    now = time.perf_counter()
    return page, now - server.began, now - asked


def _in_page(page: Any, fragment: str) -> float:
    """Seconds from a link to its page at rest."""
    began = time.perf_counter()
    page.evaluate("to => { location.hash = to }", fragment)
    page.wait_for_function(RESTS)
    return time.perf_counter() - began


@row(
    "viewer",
    SECTION,
    {
        "names": Line("100,000 tensors: first sentence, without an index", aim="<= 10", unit="s"),
        "all": Line("all measured", unit="s"),
        "first": Line("first sentence, with an index", aim="<= 1", unit="s"),
        "command": Line("the same from the command on", unit="s"),
        "list": Line("the list of operators, first time", unit="s"),
        "scroll": Line("a page of rows", aim="<= 20", unit="ms"),
        "search": Line("search", aim="<= 20", unit="ms"),
        "operator": Line("an operator", aim="<= 150", unit="ms"),
        "graph": Line("graph of 20,000 operators", aim="<= 2", unit="s"),
        "unfold": Line("a scope of it that opens", unit="ms"),
        "large": Line("first matrix of a tensor of 4 GiB", aim="<= 300", unit="ms"),
        "map": Line("map of 10,000 operators x 300 iterations: first picture, with an index", aim="<= 1", unit="s"),
        "frames": Line("frames a second while hovering over it", aim=">= 60", unit=""),
        "zoom": Line("all its cells pooled and drawn again", aim="<= 100", unit="ms"),
        "memory": Line("memory of the server", aim="<= 300", unit="MiB"),
        "report": Line("report of 30,000 tensors: to write", unit="s"),
        "size": Line("its size", aim="<= 4", unit="MB"),
        "opens": Line("it opens", aim="<= 2", unit="s"),
    },
    least=1,
    most=3,
)
def viewer(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise NotMeasurableError("needs playwright (pip install '.[view,browser-test]')") from error
    chromium = shutil.which("chromium")
    if chromium is None:
        raise NotMeasurableError("needs chromium")
    operators = 1_000 if bench.is_quick else 10_000
    with scratch("disk") as folder, sync_playwright() as playwright:
        make_dump(folder / "dump", operators, has_large=True)
        make_dump(folder / "small", operators * 3 // 10, has_large=False)
        make_graph(folder / "graph", 2 * operators)
        make_statistics(folder / "statistics", operators, MAP_ITERATIONS)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        while True:
            shutil.rmtree(folder / "cache", ignore_errors=True)
            yield {
                **_first(browser, folder),
                **_pages(browser, folder, operators),
                **_graph(browser, folder),
                **_map(browser, folder),
                **_report(browser, folder),
            }


def _first(browser: Any, folder: Path) -> dict[str, float]:
    with Server(folder / "dump", folder / "cache") as server:
        page, names, _ = _paint(browser, server)
        page.wait_for_function("() => !document.querySelector('.progress')", timeout=1_200_000)
        everything = time.perf_counter() - server.began
        page.close()
    with Server(folder / "dump", folder / "cache") as server:
        page, command, first = _paint(browser, server)
        page.close()
    return {"names": names, "all": everything, "first": first, "command": command}


def _pages(browser: Any, folder: Path, operators: int) -> dict[str, float]:
    with Server(folder / "dump", folder / "cache") as server:
        page, _, _ = _paint(browser, server)
        values = {"list": _in_page(page, "#/operators/0/0/0")}
        for key, change, step in (("scroll", SCROLL, 700), ("search", SEARCH, 1)):
            scripts = [TIMED.replace("CHANGE", change.format(step * (one + 1))) for one in range(15)]
            values[key] = statistics.median(page.evaluate(script) for script in scripts)
        values["operator"] = statistics.median(
            1000 * _in_page(page, f"#/operator/0/0/0/{37 * one}") for one in range(10)
        )
        large = LARGE.replace("NUMBER", str(10 * operators))
        values["large"] = statistics.median(page.evaluate(large) for _ in range(7))
        values["memory"] = server.memory() / (1 << 20)
        page.close()
    return values


def _graph(browser: Any, folder: Path) -> dict[str, float]:
    with Server(folder / "graph", folder / "cache") as server:
        page, _, _ = _paint(browser, server)
        page.wait_for_function("() => !document.querySelector('.progress')", timeout=600_000)
        opens = _in_page(page, "#/graph/0/0/0")
        assert page.locator(".node").count() > 1
        closed = page.locator(".node[aria-expanded=false]").first
        began = time.perf_counter()
        closed.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("id => document.activeElement.ariaExpanded === 'true'")
        unfolds = time.perf_counter() - began
        page.close()
    return {"graph": opens, "unfold": 1000 * unfolds}


def _map(browser: Any, folder: Path) -> dict[str, float]:
    cache = folder / "map-cache"
    with Server(folder / "statistics", cache) as server:
        page, _, _ = _paint(browser, server)
        page.wait_for_function("() => !document.querySelector('.progress')", timeout=1_200_000)
        page.close()
    widen(cache)
    with Server(folder / "statistics", cache) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        asked = time.perf_counter()
        page.goto(server.url)
        page.wait_for_selector(".legend .swatch", timeout=600_000)
        first = time.perf_counter() - asked
        page.wait_for_timeout(3_000)
        frames = statistics.median(page.evaluate(HOVER) for _ in range(3))
        zoom = statistics.median(page.evaluate(ZOOM.replace("BUTTON", str(-1 - one % 2))) for one in range(6))
        page.close()
    shutil.rmtree(cache)
    return {"map": first, "frames": frames, "zoom": zoom}


def _report(browser: Any, folder: Path) -> dict[str, float]:
    target = folder / "report.html"
    seconds = seconds_of(["-m", "msdump", "report", folder / "small", "-o", target])
    page = browser.new_page()
    began = time.perf_counter()
    page.goto(target.as_uri())
    page.wait_for_selector(".verdict")
    opens = time.perf_counter() - began
    page.close()
    return {"report": seconds, "size": target.stat().st_size / 1e6, "opens": opens}
