"""Regions: what `torch.compile` made, which runs as a whole; and which of them a run met, for its report."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING

import torch
from torch._dynamo import eval_frame, external_utils
from torch.utils._python_dispatch import TorchDispatchMode

from msdump.frontends.torch.eager.signatures import Tensor, tensors_in
from msdump.graph.types import SourceLine

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession

_MAX_LINES = 20
# Names of the code that Dynamo makes where it goes on after a graph break.
_RESUMED = re.compile(r"(?:torch_dynamo_resume_in_)+(?P<name>.+?)(?:_at_[0-9]+)+$")
# Files of code that PyTorch writes itself: compiled autograd has graphs of it.
_MADE = "<eval_with_key>"


class Region:
    """One graph that Dynamo compiled. To a stage it is an operator of which nothing is known but its border.

    op_type  `compiled.` and the function that it is a part of
    place    file:line of that function, and its name
    shows_operators  whether a backend of msdump shows what it computes inside
    """

    is_message = is_send = is_receive = is_waited = is_view = False
    # It may write whatever it is given, and says it to nobody.
    is_mutable = True

    def __init__(self, shows_operators: bool = False) -> None:
        self.shows_operators = shows_operators
        self.op_type = self.name = "compiled"
        self.place = ""
        self.lines: tuple[SourceLine, ...] = ()

    def find_place(self, frame: FrameType | None) -> None:
        """The function that runs it, which is that of the script as Dynamo has rewritten it."""
        if self.place:
            return
        while frame is not None and frame.f_code.co_filename in (eval_frame.__file__, __file__):
            frame = frame.f_back
        if frame is None:
            return
        code, name = _function_of(frame)
        self.op_type = self.name = f"compiled.{re.sub('[^0-9A-Za-z_.]+', '_', name).strip('_.')}"
        is_made = code.co_filename.startswith(_MADE)
        self.place = "compiled autograd" if is_made else f"{code.co_filename}:{code.co_firstlineno} in {name}"

    def tensors(self, args: Sequence[object], keywords: Mapping[str, object]) -> list[Tensor]:
        """What it is given; that it writes none of it is not said."""
        named = [("args", list(args)), *keywords.items()]
        return [Tensor(place, tensor, False) for name, value in named for place, tensor in tensors_in(value, name)]

    def attributes(self, args: Sequence[object], keywords: Mapping[str, object]) -> dict[str, object]:
        """Where it comes from."""
        return {"region": self.place}


def _function_of(frame: FrameType) -> tuple[CodeType, str]:
    code = frame.f_code
    if code.co_filename.startswith(_MADE):
        return code, "autograd"
    called = frame.f_locals.get("fn")
    if code.co_filename == external_utils.__file__ and isinstance(called, torch.nn.Module):
        # A module of PyTorch's own is called by a function there.
        forward = type(called).forward
        return getattr(forward, "__code__", code), f"{type(called).__name__}.forward"
    return code, _RESUMED.sub(r"\g<name>", getattr(code, "co_qualname", code.co_name))


class RegionCounts:
    """How often each region ran, by its place. Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.has_run = False
        self._runs: Counter[str] = Counter()
        self._shown: Counter[str] = Counter()

    def count(self, region: Region, is_shown: bool) -> None:
        if region.shows_operators:
            return
        with self._lock:
            self._runs[region.place] += 1
            self._shown[region.place] += is_shown

    def lines(self) -> tuple[str, ...]:
        """A line for each place, in the order in which they were met."""
        with self._lock:
            runs = list(self._runs.items())
        lines = [
            f"compiled by torch.compile: {place or 'an unknown line'}: ran {_times(count)}, {self._shown[place]} of "
            "them shown at the border, what it computes inside in no dump."
            for place, count in runs[:_MAX_LINES]
        ]
        if len(runs) > _MAX_LINES:
            rest = sum(count for _, count in runs[_MAX_LINES:])
            lines.append(f"compiled by torch.compile: {len(runs) - _MAX_LINES} more places: ran {_times(rest)}.")
        if runs and not hasattr(TorchDispatchMode, "ignore_compile_internals"):
            lines.append(
                f"compiled by torch.compile: PyTorch {torch.__version__} may compile once more for iterations that are "
                "dumped. Install a newer one with: pip install --upgrade 'torch>=2.9'"
            )
        return tuple(lines)


def _times(count: int) -> str:
    return f"{count} time{'' if count == 1 else 's'}"


def counts_of(session: GraphSession) -> RegionCounts:
    """Those of a session, which all programs that it watches share; its report has their lines."""
    return session.shared(_new_counts)


def _new_counts(session: GraphSession) -> RegionCounts:
    counts = RegionCounts()
    session.add_remarks(counts.lines)
    return counts
