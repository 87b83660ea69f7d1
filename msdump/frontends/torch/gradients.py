"""Gradients: of each iteration that a sampled dump leaves out, what its optimizers read."""

from __future__ import annotations

import contextlib
import hashlib
import math
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from msdump.formats.gradients_csv import GradientRow, first_bad, norm_of
from msdump.frontends.torch.eager.tensors import local
from msdump.frontends.torch.instances import instances_of

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession

# Rows are written that often, in seconds, and where one is not finite; so much is lost where a process is killed.
_PAUSE = 1.0


class Gradients:
    """Of one session. `note` is called where an optimizer begins a step; nothing is read where no sampling is asked.

    The numbers of a step on a device are fetched when the next one is noted, so that no step waits for them.
    """

    def __init__(self, session: GraphSession) -> None:
        self._session = weakref.ref(session)
        self._pending: list[_Measured] = []
        self._rows: list[GradientRow] = []
        self._written = time.monotonic()
        self._count = 0
        self._first: GradientRow | None = None
        self._failure = ""
        # Threads may train at the same time.
        self._lock = threading.RLock()
        session.call_before_end(self.save)
        session.add_notes(self.notes)

    def note(self, iteration: int | None, optimizer: object, is_skipped: bool = False) -> None:
        """An optimizer is about to make a step, or a scaler of the loss has left it out."""
        session = self._session()
        if (
            iteration is None
            or session is None
            or self._failure
            or not issubclass(type(optimizer), torch.optim.Optimizer)
        ):
            return
        plan = session.plan
        if plan.when.sampler is None or plan.watches(iteration):
            return
        with self._lock:
            is_first_bad = self._first is None
            with self._whatever_fails(session):
                self._settle()
                measured = _Measured(iteration, optimizer, is_skipped)
                self._pending.append(measured)
                if not measured.waits:
                    self._settle()
            is_first_bad &= self._first is not None
            if self._rows and (is_first_bad or time.monotonic() - self._written >= _PAUSE):
                self._write(session)

    def save(self) -> None:
        """Write what is not written yet."""
        session = self._session()
        if session is not None:
            with self._lock:
                with self._whatever_fails(session):
                    self._settle()
                self._write(session)

    def _write(self, session: GraphSession) -> None:
        rows, self._rows = self._rows, []
        self._written = time.monotonic()
        if rows:
            session.keep_gradients(rows)

    @contextlib.contextmanager
    def _whatever_fails(self, session: GraphSession) -> Iterator[None]:
        """Training goes on, whatever a tensor of another library does; what is not known counts as lost."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as it says
            self._pending.clear()
            self._failure = f"{type(error).__name__}: {error}"
            session.count_lost(1)

    def notes(self) -> tuple[str, ...]:
        """What the report says of it."""
        found: list[str] = []
        if self._count:
            found.append(f"gradients of {self._count} steps in between are in gradients.csv.")
        if self._first is not None:
            more = f" and {self._first.not_finite - 1} more" if self._first.not_finite > 1 else ""
            found.append(
                f"gradients of {self._first.first}{more} were not finite in iteration {self._first.iteration}, "
                "which was not dumped."
            )
        if self._failure:
            found.append(f"gradients in between could not be read: {self._failure}.")
        return tuple(found)

    def _settle(self) -> None:
        pending, self._pending = self._pending, []
        for measured in pending:
            row = measured.row()
            self._count += 1
            self._rows.append(row)
            self._first = self._first or first_bad([row])


class _Measured:
    """The L2 norms of the gradients of one step, which may still be on their way from a device."""

    def __init__(self, iteration: int, optimizer: Any, is_skipped: bool) -> None:
        self._iteration = iteration
        self._name = type(optimizer).__name__
        self._is_skipped = is_skipped
        # Source: PyTorch, `GradScaler.step`: a fused optimizer is given these, and divides and skips by itself.
        self._scale, self._found_inf = (
            None if value is None else _fetched(value.detach().reshape(1).float())
            for value in (getattr(optimizer, name, None) for name in ("grad_scale", "found_inf"))
        )
        parameters = [each for group in optimizer.param_groups for each in group["params"] if each.grad is not None]
        self._parameters = [weakref.ref(each) for each in parameters]
        self._groups: list[tuple[list[int], torch.Tensor, torch.cuda.Event | None]] = []
        with torch.no_grad(), _disable_current_modes():
            gradients = [_elements(each.grad) for each in parameters]
            for places in _alike(gradients):
                self._groups.append((places, *_fetched(_norms([gradients[place] for place in places]))))

    @property
    def waits(self) -> bool:
        """Whether the numbers are still on their way."""
        return any(event is not None for _, _, event in self._groups)

    def row(self) -> GradientRow:
        norms = [0.0] * len(self._parameters)
        for places, values, event in self._groups:
            if event is not None:
                event.synchronize()
            for place, value in zip(places, values.tolist(), strict=True):
                norms[place] = value
        scale = _value(self._scale, 1.0)
        norms = [norm / scale for norm in norms]
        bad = [place for place, norm in enumerate(norms) if not math.isfinite(norm) and not self._is_large(place)]
        digest = hashlib.blake2b(struct.pack(f"<{len(norms)}d", *norms), digest_size=8).hexdigest()
        first = _name_of(self._parameters[bad[0]](), bad[0]) if bad else ""
        return GradientRow(
            self._iteration,
            self._name,
            len(norms),
            norm_of(norms),
            len(bad),
            first,
            self._is_skipped or _value(self._found_inf, 0.0) > 0,
            digest,
        )

    def _is_large(self, place: int) -> bool:
        """Whether only the sum of squares is not finite, where the gradient can still be read."""
        parameter = self._parameters[place]()
        if self.waits or parameter is None or parameter.grad is None:
            return False
        with torch.no_grad(), _disable_current_modes():
            return bool(torch.isfinite(_elements(parameter.grad)).all())


def _elements(gradient: torch.Tensor) -> torch.Tensor:
    """What of a gradient is in this process, and stored."""
    own = local(gradient)
    return own.coalesce().values() if own.layout == torch.sparse_coo else own


def _alike(gradients: Sequence[torch.Tensor]) -> Iterator[list[int]]:
    """Places of those that one call can measure."""
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for place, each in enumerate(gradients):
        groups.setdefault((each.device, each.dtype), []).append(place)
    yield from groups.values()


def _norms(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """L2 norm of each, in float32 at least."""
    if gradients[0].dtype in (torch.float16, torch.bfloat16):
        norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in gradients]
    else:
        norms = list(torch._foreach_norm(list(gradients), 2))
    return torch.stack(norms)


def _fetched(norms: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event | None]:
    """The same on the host, and what tells that they have arrived."""
    if norms.device.type != "cuda":
        return norms, None
    host = torch.empty_like(norms, device="cpu", pin_memory=True)
    host.copy_(norms, non_blocking=True)
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return host, event


def _value(fetched: tuple[torch.Tensor, torch.cuda.Event | None] | None, default: float) -> float:
    """The number that was fetched."""
    if fetched is None:
        return default
    value, event = fetched
    if event is not None:
        event.synchronize()
    return float(value[0])


def _name_of(parameter: torch.Tensor | None, place: int) -> str:
    """As the outermost module that has it names it. It takes long."""
    names = []
    for module in instances_of(torch.nn.Module):
        with contextlib.suppress(AttributeError, TypeError):  # of one that is under construction
            names += [name for name, each in module.named_parameters(remove_duplicate=False) if each is parameter]
    return max(names, key=len, default=f"parameter {place}").replace("_orig_mod.", "")


def gradients_of(session: GraphSession) -> Gradients:
    """Those of all programs of the session."""
    return session.shared(Gradients)
