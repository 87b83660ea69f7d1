"""Tables of the documentation, made from results between markers; the text around them is written by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.picture import picture

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
# Pages that show a section again.
OTHERS = (ROOT / "docs" / "which-tool.md",)
PICTURE = ROOT / "docs" / "images" / "step-time.svg"
_BLOCK = re.compile(r"(<!-- benchmarks: (.*?) -->\n)(.*?)(<!-- benchmarks: end -->)", re.DOTALL)
_HEADER = (
    "| what | median | min to max | of the shortest times | rounds | of what | aim |\n|---|---|---|---|---|---|---|\n"
)
MACHINE = "machine"


def write(document: dict[str, Any]) -> None:
    """Make the tables and the picture anew."""
    for path in (PAGE, *OTHERS):
        path.write_text(made(path.read_text(encoding="utf-8"), document), encoding="utf-8")
    svg = picture(document["results"])
    if svg is not None:
        PICTURE.write_text(svg, encoding="utf-8")


def made(text: str, document: dict[str, Any]) -> str:
    """The page with each of its tables made from results."""

    def block(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        return f"{begin}\n{_machine(document) if name == MACHINE else table(document, name)}\n{end}"

    return _BLOCK.sub(block, text)


def sections(text: str) -> list[str]:
    """Names of the tables that a page has."""
    return [name for _, name, _, _ in _BLOCK.findall(text) if name != MACHINE]


def table(document: dict[str, Any], section: str) -> str:
    """The results of a section as a table of Markdown."""
    lines = [_line(result) for result in document["results"] if result["section"] == section]
    return _HEADER + "".join(lines) if lines else "Not measured.\n"


def text_line(result: dict[str, Any]) -> str:
    """A result for the terminal."""
    name, number = f"{result['row']} {result['line']}", _number(result, result["median"])
    more = [_range(result), f"best {_number(result, result['best'])}", _rounds(result)]
    more += [f"aim {_aim(result)}"] if result["aim"] else []
    return f"{name:36} {number:>12}  {', '.join(more)}; {result['what']}; {_against(result)}"


def _line(result: dict[str, Any]) -> str:
    numbers = [_number(result, result["median"]), _range(result), _number(result, result["best"])]
    return f"| {' | '.join([result['what'], *numbers, _rounds(result), _against(result), _aim(result)])} |\n"


def _number(result: dict[str, Any], value: float) -> str:
    return f"{_digits(value, result['unit'])} {result['unit']}".rstrip()


def _digits(value: float, unit: str) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if unit or abs(value) >= 100 else f"{value:.2f}"


def _range(result: dict[str, Any]) -> str:
    return " to ".join(_digits(result[key], result["unit"]) for key in ("least", "greatest"))


def _rounds(result: dict[str, Any]) -> str:
    return (
        f"{result['rounds']}" if result["is_settled"] else f"{result['rounds']}, spread {100 * result['spread']:.0f} %"
    )


def _against(result: dict[str, Any]) -> str:
    return "; ".join(part for part in (result["against"], result["note"]) if part)


def _aim(result: dict[str, Any]) -> str:
    if not result["aim"]:
        return ""
    aim = result["aim"].replace("<=", "≤").replace(">=", "≥") + (f" {result['unit']}" if result["unit"] else "")
    if result["is_met"]:
        return aim
    return f"{aim}, by the shortest times alone" if result["is_met_at_best"] else f"**{aim}, missed**"


def _machine(document: dict[str, Any]) -> str:
    facts = document["machine"]
    versions = ", ".join(
        f"{name} {facts[name]}" for name in ("numpy", "numba", "torch", "onnxruntime") if name in facts
    )
    loads = [result["load"] for result in document["results"]] or [0.0]
    return (
        f"{facts['cores']} cores ({facts['machine']}), {facts['memory_gb']} GB of memory, Python {facts['python']}, "
        f"{versions}; load when a row began: {min(loads):.1f} to {max(loads):.1f}.\n"
    )
