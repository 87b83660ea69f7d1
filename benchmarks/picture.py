"""The picture of docs/performance.md: where a dumped step's time goes, as bars of SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ROW = "where-time-goes"
PARTS = {
    "step": ("the step itself", "#9fa8da"),
    "write": ("write() of the bytes", "#3f51b5"),
    "names": ("creating and linking files", "#1a237e"),
    "read": ("reading the tensors once", "#80cbc4"),
    "md5": ("MD5 on all cores", "#ffb74d"),
    "rest": ("everything else", "#e57373"),
}
KINDS = {
    "plain": "no dump",
    "tensors": "every tensor, tmpfs",
    "tensors-disk": "every tensor, disk",
    "statistics": "statistics without MD5",
    "statistics-md5": "statistics with MD5",
}
WIDTH, LEFT, BAR, GAP = 980, 210, 30, 18
TOP = 60


def picture(results: Sequence[Mapping[str, Any]]) -> str | None:
    """SVG of the results of the row `where-time-goes`; None where they are missing."""
    seconds = {result["line"]: result["median"] for result in results if result["row"] == ROW}
    bars = {kind: _parts(seconds, kind) for kind in KINDS if f"{kind}.step" in seconds}
    if not bars:
        return None
    longest = max(sum(parts.values()) for parts in bars.values())
    scale = (WIDTH - LEFT - 90) / longest
    height = TOP + len(bars) * (BAR + GAP) + 30
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="#ffffff"/>',
        *_legend(),
    ]
    for number, (kind, parts) in enumerate(bars.items()):
        shapes += _bar(KINDS[kind], parts, TOP + number * (BAR + GAP), scale)
    return "\n".join([*shapes, "</svg>\n"])


def _parts(seconds: Mapping[str, float], kind: str) -> dict[str, float]:
    return {part: max(0.0, seconds.get(f"{kind}.{part}", 0.0)) for part in PARTS}


def _legend() -> list[str]:
    shapes, x = [], 24.0
    for title, color in PARTS.values():
        shapes.append(f'<rect x="{x:.0f}" y="20" width="14" height="14" fill="{color}"/>')
        shapes.append(f'<text x="{x + 20:.0f}" y="32" font-size="12" fill="#37474f">{title}</text>')
        x += 40 + 6.6 * len(title)
    return shapes


def _bar(title: str, parts: Mapping[str, float], y: float, scale: float) -> list[str]:
    shapes = [f'<text x="{LEFT - 12}" y="{y + 20:.0f}" text-anchor="end" fill="#1a237e">{title}</text>']
    x = float(LEFT)
    for part, length in parts.items():
        if length * scale >= 0.5:
            color = PARTS[part][1]
            shapes.append(
                f'<rect x="{x:.1f}" y="{y:.0f}" width="{length * scale:.1f}" height="{BAR}" fill="{color}">'
                f"<title>{PARTS[part][0]}: {length:.2f} s</title></rect>"
            )
            x += length * scale
    return [*shapes, f'<text x="{x + 8:.1f}" y="{y + 20:.0f}" fill="#37474f">{sum(parts.values()):.2f} s</text>']
