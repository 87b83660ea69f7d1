"""The widget of a notebook in a real browser: the page in its frame, whose questions Python answers."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msdump.viewing.report_file import asset

# What anywidget gives to `render`, with a kernel that is a function of the test's.
NOTEBOOK = """async ([source, page, at]) => {
    const { default: widget } = await import("data:text/javascript;base64," + source);
    const listeners = [];
    const model = {
        get: name => ({ _page: page, at, height: 600 })[name],
        on: (_, listener) => listeners.push(listener),
        off: () => {},
        send: async ({ view, number, address }) => {
            const [status, body] = await kernel(address);
            const bytes = Uint8Array.from(atob(body), letter => letter.charCodeAt(0));
            for (const listener of listeners) listener({ view, number, status }, [new DataView(bytes.buffer)]);
        },
    };
    const cell = document.createElement("div");
    document.body.replaceChildren(cell);
    widget.render({ model, el: cell });
}"""


def test_the_page_lives_in_a_cell(
    browser: Any, dumps: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anywidget")
    import msdump
    from msdump.viewing.widget import asked

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    widget = msdump.view(dumps("onnx"))
    page = browser.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    questions: list[str] = []

    def kernel(address: str) -> tuple[int, str]:
        questions.append(address)
        future = asyncio.run_coroutine_threadsafe(asked(widget._application, address), widget._loop)
        status, body = future.result(60)
        return status, base64.b64encode(body).decode()

    page.expose_function("kernel", kernel)
    page.goto("data:text/html,<title>notebook</title><body></body>")
    source = base64.b64encode(asset("widget.js").encode()).decode()
    page.evaluate(NOTEBOOK, [source, widget._page, widget.at])
    frame = page.frame_locator("iframe")
    frame.locator(".verdict.bad").wait_for(timeout=60_000)
    frame.get_by_role("link", name="Operators", exact=True).click()
    frame.locator("#search").wait_for(timeout=20_000)
    assert any(question.startswith("api/step/") for question in questions)
    assert page.url.startswith("data:") and problems == []
    page.close()


def test_the_widget_asks_for_nothing_else(tmp_path: Path) -> None:
    source = asset("widget.js")
    assert "fetch(" not in source and "import(" not in source and json.dumps("allow-scripts") in source
