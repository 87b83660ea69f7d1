"""The picture of docs/performance.md: where a dumped step's time goes, as bars of SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ROW = "where-time-goes"
PARTS = {
    "step": ("the step itself", "#9fa8da"),
    "added": ("what the dump adds", "#e57373"),
    "write": ("bare write() of the bytes, one thread", "#3f51b5"),
    "names": ("bare creating and linking", "#1a237e"),
    "read": ("reading the tensors once", "#00897b"),
    "md5": ("MD5 of them, all cores", "#ffb74d"),
}
MEASURED, LIMITS = ("step", "added"), ("write", "names", "read", "md5")
KINDS = {
    "plain": "no dump",
    "tensors": "every tensor, tmpfs",
    "tensors-disk": "every tensor, disk",
    "statistics": "statistics without MD5",
    "statistics-md5": "statistics with MD5",
}
WIDTH, LEFT, TOP = 980, 210, 70
# Heights: of what was measured, of the limits below it, and of the space below both.
BAR, THIN, GAP = 24, 8, 16


def picture(results: Sequence[Mapping[str, Any]]) -> str | None:
    """SVG of the results of the row `where-time-goes`; None where they are missing.

    Each kind of dump has a bar of what was measured, and below it a thin one of what the machine needs for it.
    """
    seconds = {result["line"]: result["median"] for result in results if result["row"] == ROW}
    bars = {kind: {part: max(0.0, seconds.get(f"{kind}.{part}", 0.0)) for part in PARTS} for kind in KINDS}
    bars = {kind: parts for kind, parts in bars.items() if parts["step"]}
    if not bars:
        return None
    longest = max(parts["step"] + max(_sum(parts, LIMITS), parts["added"]) for parts in bars.values())
    scale = (WIDTH - LEFT - 90) / longest
    height = TOP + len(bars) * (BAR + THIN + GAP) + 8
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="#ffffff"/>',
        *_legend(),
    ]
    for number, (kind, parts) in enumerate(bars.items()):
        y = TOP + number * (BAR + THIN + GAP)
        shapes.append(f'<text x="{LEFT - 12}" y="{y + 17}" text-anchor="end" fill="#1a237e">{KINDS[kind]}</text>')
        shapes += _bar(parts, MEASURED, LEFT, y, BAR, scale)
        shapes += _bar(parts, LIMITS, LEFT + parts["step"] * scale, y + BAR, THIN, scale)
        end, total = LEFT + _sum(parts, MEASURED) * scale + 8, _sum(parts, MEASURED)
        shapes.append(f'<text x="{end:.1f}" y="{y + 17}" fill="#37474f">{total:.2f} s</text>')
    return "\n".join([*shapes, "</svg>\n"])


def _sum(parts: Mapping[str, float], names: Sequence[str]) -> float:
    return sum(parts[name] for name in names)


def _legend() -> list[str]:
    shapes = []
    for number, (title, color) in enumerate(PARTS.values()):
        x, y = 24 + 310 * (number % 3), 16 + 22 * (number // 3)
        shapes.append(f'<rect x="{x}" y="{y}" width="14" height="14" fill="{color}"/>')
        shapes.append(f'<text x="{x + 20}" y="{y + 12}" font-size="12" fill="#37474f">{title}</text>')
    return shapes


def _bar(parts: Mapping[str, float], names: Sequence[str], x: float, y: float, height: int, scale: float) -> list[str]:
    shapes = []
    for name in names:
        title, color = PARTS[name]
        length = parts[name] * scale
        if length >= 0.5:
            shapes.append(
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{height}" fill="{color}">'
                f"<title>{title}: {parts[name]:.2f} s</title></rect>"
            )
            x += length
    return shapes
