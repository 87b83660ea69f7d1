"""Make the pictures of the viewer that README and docs show: `python -m tests.browser.screenshots`.

With `--all DIR` make pictures of the pages of six dumps there: light, dark, 420 pixels wide, and in Chinese.
They are looked at, not compared: each browser draws letters in its own way.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.conftest import serving
from tests.browser.scenes import DEMO, LARGE, NAN, ROOT, SCENES, Scene

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1240, "height": 860}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": SIZE, "locale": "en", "color_scheme": "light"},
    "dark": {"viewport": SIZE, "locale": "en", "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 420, "height": 860}, "locale": "en", "color_scheme": "light"},
    "chinese": {"viewport": SIZE, "locale": "zh-CN", "color_scheme": "light"},
}
PAGES = ("overview", "panel", "graph", "compare", "ranks")
SIX = (DEMO, NAN, SCENES["quantised-outlier"], SCENES["gelu-form"], SCENES["flipped-bit"], LARGE)


@contextmanager
def shown(scene: Scene, folder: Path) -> Iterator[str]:
    """The address of a viewer on a scene."""
    home = folder / scene.name
    home.mkdir()
    dump, golden = scene.make(home)
    with serving(dump, golden, home) as viewing:
        yield viewing.url


def go(page: Any, name: str) -> bool:
    """Show a page of the dump that is open; whether it has one of that name."""
    page.evaluate("to => { location.hash = to }", "#/overview")
    rest(page)
    if name in ("graph", "compare", "ranks"):
        link = page.locator(f"nav a[href^='#/{name}']")
        if not link.count():
            return False
        page.evaluate("to => { location.hash = to }", link.first.get_attribute("href"))
    elif name == "panel":
        finding = page.locator(".headline h1 a")
        if not finding.count():
            return False
        finding.first.click()
    rest(page)
    return True


def rest(page: Any) -> None:
    page.wait_for_function(
        "() => document.querySelector('main') && !document.querySelector('[aria-busy=true], .progress')",
        timeout=300_000,
    )
    page.wait_for_timeout(900)


def all_pages(browser: Any, folder: Path, target: Path) -> None:
    """Pictures of all pages of six dumps in all looks, as SCENE-PAGE-LOOK.png."""
    target.mkdir(parents=True, exist_ok=True)
    for scene in SIX:
        with shown(scene, folder) as url:
            for look, options in LOOKS.items():
                page = browser.new_page(**options)
                page.goto(url)
                rest(page)
                for name in PAGES:
                    if go(page, name):
                        page.screenshot(path=target / f"{scene.name}-{name}-{look}.png")
                page.close()


def of_docs(browser: Any, folder: Path) -> None:
    """The pictures that README and docs show."""
    wanted = {NAN: {"overview": "viewer-overview", "panel": "viewer-operator", "graph": "viewer-graph"},
              SCENES["gelu-form"]: {"compare": "viewer-compare"}}  # fmt: skip
    for scene, names in wanted.items():
        with shown(scene, folder) as url:
            page = browser.new_page(**LOOKS["light"])
            page.goto(url)
            rest(page)
            for name, file in names.items():
                assert go(page, name), name
                page.screenshot(path=IMAGES / f"{file}.png")
            page.close()


def main() -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--all", metavar="DIR", type=Path, help="pictures of all pages of six dumps go there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if args.all is None:
            of_docs(browser, Path(name))
        else:
            all_pages(browser, Path(name), args.all)
        browser.close()


if __name__ == "__main__":
    main()
