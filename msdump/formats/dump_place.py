"""Where a file of a dump lies: what the folders above it say, in every layout that anybody writes.

    sync             rank_N/{net}/{graph}/{iteration} and rank_N/{net}/{graph}/constants
    model            [{step}/]{time}/{device}/{model}/{model_id}/{iteration}
    operator         [{step}/]{time}/{device}[/{iteration}]
    fx               worldsizeN_global_rankM/graph_G/{step}
    exception        extra-info/data-dump/{device}
    bare             anything else

The layouts "model" and "operator" may lie below worldsizeN_global_rankM, which then tells the rank.
Source: MindSpore dump guide; CANN, directories of a dump; TorchAir, folders of its two data dumps.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from msdump.formats.async_layout import parse_async_path
from msdump.formats.layout import CONSTANTS, DATA, NUMBER, parse_sync_path
from msdump.formats.torchair_layout import parse_torchair_path

SYNC, MODEL, OPERATOR, FX, EXCEPTION, BARE = "sync", "model", "operator", "fx", "exception", "bare"
_RANK = re.compile(r"rank_([0-9]{1,20})")
_WORLD = re.compile(r"worldsize([0-9]{1,20})_global_rank([0-9]{1,20})")
_TIME = re.compile(r"[0-9]{14}")
_NUMBER = re.compile(NUMBER)
_DEBUG_FILES = "debug_files"


@dataclass(frozen=True, slots=True)
class Place:
    """What a folder says; None where its layout has no such level.

    rank_id       process in the job; where only the device is known, the device
    model         net name or model name
    graph_id      graph id or model id
    iteration     the training step where the layout tells it, else the graph engine's own count
    data_index    the graph engine's own count
    is_constants  the folder of a graph's constants, which belong to no iteration
    rank_depth    leading parts of the path that lead to the folder of the rank; 0 when there is none
    """

    layout: str = BARE
    rank_id: int | None = None
    device_id: int | None = None
    time: str | None = None
    model: str | None = None
    graph_id: int | None = None
    iteration: int | None = None
    data_index: int | None = None
    is_constants: bool = False
    rank_depth: int = 0

    @property
    def sort_key(self) -> tuple[int, str, int, int, int, str]:
        """Order in which folders were filled."""
        return (
            _or_first(self.rank_id),
            self.time or "",
            _or_first(self.iteration),
            _or_first(self.data_index),
            _or_first(self.graph_id),
            self.model or "",
        )


def parse_place(parts: Sequence[str]) -> Place:
    """What the parts of a folder's absolute path say; the deepest layout that fits wins."""
    return _parse_place(tuple(parts))


@functools.lru_cache(maxsize=4096)
def _parse_place(parts: tuple[str, ...]) -> Place:
    for first in range(len(parts) - 1, -1, -1):
        part = parts[first]
        if _RANK.fullmatch(part):
            found = _sync(parts, first)
        elif _TIME.fullmatch(part):
            found = _async(parts, first)
        elif _WORLD.fullmatch(part):
            found = _fx(parts, first)
        elif part == "extra-info":
            found = _exception(parts[first:])
        else:
            found = None
        if found is not None:
            return found
    return Place()


def _sync(parts: tuple[str, ...], first: int) -> Place | None:
    tail = parts[first:]
    path = parse_sync_path("/".join((*tail, "x")))
    if path is not None and path.kind in (DATA, CONSTANTS):
        return Place(
            SYNC,
            path.rank_id,
            model=path.net_name,
            graph_id=path.graph_id,
            iteration=path.iteration,
            is_constants=path.kind == CONSTANTS,
            rank_depth=first + 1,
        )
    if len(tail) == 3 and tail[1] == _DEBUG_FILES and _NUMBER.fullmatch(tail[2]):
        return Place(SYNC, int(tail[0][5:]), iteration=int(tail[2]), rank_depth=first + 1)
    return None


def _async(parts: tuple[str, ...], first: int) -> Place | None:
    """With a step before the time when there is one; only such layouts may end without a model."""
    place = None
    if first and _NUMBER.fullmatch(parts[first - 1]):
        place = _async_place("/".join((*parts[first - 1 :], "x")))
        above = first - 1
    if place is None:
        above = first
        place = _async_place("/".join((*parts[first:], "x")))
    if place is None:
        # A step of its own makes the layout without models complete; it is not told further.
        found = parse_async_path("/".join(("0", *parts[first:], "x")))
        if found is None or found.model_name is not None:
            return None
        place = Place(OPERATOR, found.device_id, found.device_id, found.time, None, None, found.iteration)
        place = replace(place, data_index=found.iteration)
    world = _WORLD.fullmatch(parts[above - 1]) if above else None
    return place if world is None else replace(place, rank_id=int(world[2]))


def _async_place(text: str) -> Place | None:
    found = parse_async_path(text)
    if found is None:
        return None
    return Place(
        OPERATOR if found.model_name is None else MODEL,
        found.device_id,
        found.device_id,
        found.time,
        found.model_name,
        found.model_id,
        found.iteration if found.step_id is None else found.step_id,
        found.iteration,
    )


def _fx(parts: tuple[str, ...], first: int) -> Place | None:
    found = parse_torchair_path("/".join((*parts[first:], "x")))
    if found is None:
        return None
    model = parts[first + 1]
    return Place(FX, found.global_rank, model=model, graph_id=found.graph_id, iteration=found.step)


def _exception(tail: tuple[str, ...]) -> Place | None:
    if len(tail) == 3 and tail[1] == "data-dump" and _NUMBER.fullmatch(tail[2]):
        return Place(EXCEPTION, int(tail[2]), int(tail[2]))
    return None


def _or_first(number: int | None) -> int:
    return -1 if number is None else number
