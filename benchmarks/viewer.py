"""How fast a viewer is on a large dump, in the system's Chromium: `python benchmarks/viewer.py [--operators 10000]`.

Each row is measured several times on one dump with ten tensors for each operator and one tensor of 4 GiB; printed are
the least time, the median and what the viewer aims at. Needs `pip install '.[view,browser-test]'`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
IO = (("input", 6), ("output", 4))
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
        name = (
            f"MatMul.Default_network_layer{number // 50}_MatMul-op{number}.{number}.0.{1_700_000_000_000_000 + number}"
        )
        for io, slots in IO:
            for slot in range(slots):
                np.save(step / f"{name}.{io}.{slot}.DefaultFormat.npy", rng.standard_normal((4, 8)).astype(np.float32))
    if has_large:
        large = step / f"Large.Default_network_Large-op0.{operators}.0.1800000000000000.output.0.DefaultFormat.npy"
        with open(large, "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 15, 1 << 15)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + (4 << 30))


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


def paint(browser: Any, server: Server) -> tuple[Any, float, float]:
    """A page, and seconds to its first sentence: from the start of the command on, and from asking for the page on."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    asked = time.perf_counter()
    page.goto(server.url)
    page.wait_for_selector(".verdict", timeout=600_000)
    now = time.perf_counter()
    return page, now - server.began, now - asked


def say(title: str, values: list[float], aim: str, unit: str = "s") -> None:
    print(f"| {title} | {min(values):.3g} {unit} | {statistics.median(values):.3g} {unit} | {aim} |", flush=True)


def in_page(page: Any, fragment: str) -> float:
    """Seconds from a link to its page at rest."""
    began = time.perf_counter()
    page.evaluate("to => { location.hash = to }", fragment)
    page.wait_for_function(RESTS)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", type=int, default=10_000)
    operators = parser.parse_args().operators
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        make_dump(folder / "dump", operators, has_large=True)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print(f"| {operators:,} operators, {10 * operators:,} tensors | min | median | aim |\n|---|---|---|---|")
        with Server(folder / "dump", folder / "cache") as server:
            page, seconds, _ = paint(browser, server)
            say("names, without an index", [seconds], "10 s")
            page.wait_for_function("() => !document.querySelector('.progress')", timeout=1_200_000)
            say("all measured", [time.perf_counter() - server.began], "–")
            page.close()
        painted, asked = [], []
        for _ in range(3):
            with Server(folder / "dump", folder / "cache") as server:
                page, seconds, since = paint(browser, server)
                painted.append(seconds)
                asked.append(since)
                page.close()
        say("first sentence, with an index", asked, "1 s")
        say("the same from the command on", painted, "–")
        with Server(folder / "dump", folder / "cache") as server:
            page, _, _ = paint(browser, server)
            say("the list of operators, first time", [in_page(page, "#/operators/0/0/0")], "–")
            for title, change, step in (("a page of rows", SCROLL, 7_000), ("search", SEARCH, 1)):
                scripts = [TIMED.replace("CHANGE", change.format(step * (one + 1))) for one in range(15)]
                say(title, [page.evaluate(script) for script in scripts], "20 ms", "ms")
            say(
                "an operator",
                [1000 * in_page(page, f"#/operator/0/0/0/{37 * one}") for one in range(10)],
                "150 ms",
                "ms",
            )
            large = LARGE.replace("NUMBER", str(10 * operators))
            say("first matrix of a tensor of 4 GiB", [page.evaluate(large) for _ in range(7)], "300 ms", "ms")
            say("memory of the server", [server.memory() / (1 << 20)], "300 MiB", "MiB")
            page.close()
        make_dump(folder / "small", 3_000, has_large=False)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "msdump", "report", str(folder / "small"), "-o", str(folder / "r.html")]
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        say("report of 30,000 tensors: to write", [time.perf_counter() - began], "–")
        say("its size", [(folder / "r.html").stat().st_size / 1e6], "4 MB", "MB")
        opened = []
        for _ in range(5):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto((folder / "r.html").as_uri())
            page.wait_for_selector(".verdict")
            opened.append(time.perf_counter() - began)
            page.close()
        say("it opens", opened, "2 s")
        browser.close()


if __name__ == "__main__":
    main()
