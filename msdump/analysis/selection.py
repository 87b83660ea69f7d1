"""What to say when a dump holds nothing of the ranks, graphs and iterations that were selected."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msdump.errors import ConfigError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.paths.parse import Place

Numbers = int | Collection[int] | None


def is_selected(value: int | None, numbers: Numbers) -> bool:
    """Whether a rank, graph or iteration is among those that were selected; None selects all."""
    return numbers is None or (value == numbers if isinstance(numbers, int) else value in numbers)


def nothing_selected(
    dump: DumpDir,
    *,
    expected: str,
    rank: Numbers = None,
    graph: int | str | Collection[int] | None = None,
    iteration: Numbers = None,
    advice: str = "Is it the folder that holds rank_0, or one below it?",
) -> ConfigError:
    """The error that names the selector which fits nothing, with what would fit; `advice` where the dump is empty.

    expected   what was looked for, such as "tensors or statistics"
    """
    places = _places(dump)
    if not places:
        return ConfigError(f"{dump.path}: expected {expected}, got none. {advice}")
    selectors = (
        ("rank", rank, {place.rank_id for place in places}),
        ("graph", None if isinstance(graph, str) else graph, {place.graph_id for place in places}),
        ("iteration", iteration, {place.iteration for place in places}),
    )
    for name, numbers, values in selectors:
        if not any(is_selected(value, numbers) for value in values):
            held = ranges_text(value for value in values if value is not None)
            fix = f"The dump holds {held}." if held else f"The folders of the dump tell no {name}: leave it out."
            return ConfigError(f"{name}: expected a number that {dump.path} holds, got {_text(numbers)}. {fix}")
    selected = [f"{name} {_text(numbers)}" for name, numbers, _ in selectors if numbers is not None]
    if isinstance(graph, str):
        selected.append(f'graph "{graph}"')
    if not selected:
        return ConfigError(f"{dump.path}: expected {expected}, got none. {advice}")
    return ConfigError(
        f"{dump.path}: expected {expected} of {', '.join(selected)}, got none. No step has all of these: leave one out."
    )


def ranges_text(numbers: Iterable[int]) -> str:
    """Numbers in the form of the configuration: "0|5-8"."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return "|".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _text(numbers: Numbers) -> str:
    if isinstance(numbers, (list, tuple, set, frozenset)):
        return ranges_text(numbers)
    return str(numbers)


def _places(dump: DumpDir) -> list[Place]:
    """Places of data files and of statistics, each once."""
    places = dict.fromkeys(file.place for file in dump.files() if not file.place.is_constants)
    places |= dict.fromkeys(place for place, _ in dump.statistic_files())
    places |= dict.fromkeys(place for place, _, _ in dump.statistic_dump_files())
    return list(places)
