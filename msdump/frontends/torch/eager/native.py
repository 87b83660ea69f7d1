"""Operators seen by `msdump_native`, compiled code around PyTorch's own callbacks, in the place of a dispatch mode.

The callbacks keep numbers of what runs; Python is asked where another part of a step begins, and tells observers of
all operators of a part when it ends. It is optional, installed as a package or built by `msdump native`: without it,
and where it cannot be used, the dispatch mode sees the operators.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import torch

from msdump.errors import WriteError
from msdump.frontends.torch.eager import native_builds
from msdump.frontends.torch.eager.call_sites import OWN_FOLDERS, PASSED_FILES, STOPS
from msdump.frontends.torch.eager.listening import tells_of_compiling
from msdump.frontends.torch.eager.native_calls import NativeCalls, overload_named
from msdump.frontends.torch.eager.scopes import Scopes
from msdump.frontends.torch.eager.stage import Stage
from msdump.frontends.torch.places import ROOT

if TYPE_CHECKING:
    import msdump_native

    from msdump.engine.graphs import GraphSession
    from msdump.process.report import StepTimes

log = logging.getLogger("msdump")

# Frames that tell call sites apart, as `call_site` takes them.
_MAX_FRAMES = 16
_INTERFACE = 3


BUILD_COMMAND = "msdump native"
_BUILT = "compiled code that makes dumps of eager PyTorch several times cheaper"
_MISSING = "msdump-native is not there"
# What a dump must take of its steps before a line of the report is worth it: a share, and seconds.
_WORTH_SHARE, _WORTH_SECONDS = 0.25, 1.0


@functools.cache
def why_not_native() -> str:
    """Why `msdump_native` cannot be used in this process; "" where it can. A package comes before a build."""
    if not tells_of_compiling():
        return f"PyTorch {torch.__version__} does not tell when it compiles. Install a newer one."
    try:
        import msdump_native
    except ImportError:
        return why_not_built()
    if getattr(msdump_native, "INTERFACE", 1) != _INTERFACE:
        return "msdump-native was built for another release of msdump. Install that of this one."
    return str(msdump_native.check())


def why_not_built() -> str:
    try:
        folder = native_builds.existing_build()
    except WriteError as error:
        return f"msdump-native is not loaded. {error}"
    if folder is None:
        return _MISSING
    why = native_builds.why_damaged(folder)
    if not why:
        native_builds.offer(folder)
        import msdump_native

        why = msdump_native.check()
    return f"{why} Build it again: {BUILD_COMMAND}" if why else ""


def lacks_native() -> bool:
    """Whether nothing was installed or built, which is no fault."""
    return why_not_native() == _MISSING


def native_sentence(times: StepTimes | None = None, refusal: str = "", has_seen: bool = False) -> str:
    """Whether compiled code makes a dump of eager PyTorch cheap, and what to do where it does not; for the report of a
    run, and for `msdump doctor`.

    times     of the run where it is missing; None: no run is meant
    refusal   why the run was not for it, in words; `has_seen`: whether that began after a while
    Edges:    "" where there is nothing to say: it was used, or it is missing and the run was cheap or not for it.
    """
    why = why_not_native()
    if lacks_native():
        is_costly = times is None or times.own_seconds >= max(_WORTH_SECONDS, _WORTH_SHARE * times.seconds)
        return f"`{BUILD_COMMAND}`, once, builds {_BUILT}" if is_costly and not refusal else ""
    if why or refusal:
        since = " any more" if has_seen else ""
        return f"msdump-native was not used{since}: {why or refusal}"
    return ""


@functools.cache
def why_not_on(device: torch.device) -> str:
    """Why tensors of a device cannot be measured by it; "" where they can."""
    if device.type != "cuda" or lacks_native():
        is_known = device.type in ("cpu", "meta", "cuda")
        return "" if is_known else f"it does not measure tensors on {device.type}"
    import msdump_native

    return str(msdump_native.use_cuda(torch.cuda.current_device() if device.index is None else device.index))


def why_not_shown(devices: Collection[torch.device], keeps: bool) -> str:
    """Why it cannot measure, or copy, tensors that lie there; "" where it can."""
    if keeps and any(device.type != "cpu" for device in devices):
        return "it copies no tensors of other devices than the CPU"
    return next(filter(None, map(why_not_on, devices)), "")


class NativeLook:
    """Of one program; usable where `why_not_native` is empty.

    enter       called with an operator that is about to run, and whether autograd runs it, where a part of a step may
                begin; returns the stage that it belongs to, None where it belongs to none, and whether the next one may
                begin another
    optimizers  names of those whose steps are under way
    refusal     why what ran last did not come to it, in words; set by the program
    """

    def __init__(
        self,
        session: GraphSession,
        calls: Callable[[msdump_native.Observer], NativeCalls],
        scopes: Scopes,
        enter: Callable[[torch._ops.OpOverload, bool], tuple[Stage | None, bool]],
        optimizers: Callable[[], Sequence[str]],
    ) -> None:
        import msdump_native

        self.is_on = False
        self.failure = ""
        self._session = session
        self._scopes = scopes
        self._enter = enter
        self._optimizers = optimizers
        self._iterations, self._last = 0, -1
        self._stage: Stage | None = None
        self._is_busy = self._is_asked = self._ends = False
        self._blind_depth = 0
        self._numbers: dict[str | None, int] = {}
        self._texts: list[tuple[str, bool]] = []
        # Why what runs now is not for it, or what ran last was not.
        self.refusal = ""
        self._observer: msdump_native.Observer = msdump_native.Observer(
            stops=STOPS, passed_files=PASSED_FILES, own_folders=OWN_FOLDERS, max_frames=_MAX_FRAMES
        )
        self._observer.set_handler(self._ask)
        self.calls = calls(self._observer)

    @property
    def has_seen(self) -> bool:
        """Whether operators of any iteration came from here."""
        return self._iterations > 0

    @property
    def has_news(self) -> bool:
        """Whether operators have run since the last call of `flush`."""
        return bool(self._observer.count)

    def look(self, is_on: bool) -> bool:
        """See operators, or no longer.   Returns: whether it sees them"""
        if is_on == self.is_on and not self._ends:
            return is_on
        self._ends = False
        if is_on:
            self._observer.asks = True
            try:
                self._observer.enable()
            except RuntimeError as error:
                self.failure = str(error)  # another program of this process has it
                return False
            self.is_on = True
            self.note_scope()
        elif self._is_asked:
            self._ends = True  # its callback runs: it sees nothing more, and is removed by the next flush
        else:
            self.flush()
            self.calls.break_off()
            self.is_on = False
            self._observer.disable()
        return is_on

    def close(self) -> None:
        """See nothing any more. Compiled code holds no reference to it, and it can be collected."""
        self.look(False)
        if not self.is_on:
            self._observer.set_handler(None)

    def begin(self) -> None:
        """An iteration begins."""
        self.calls.begin()

    def notes(self) -> tuple[str, ...]:
        """What the report says of it."""
        if self.failure:
            return (f"msdump-native stopped: {self.failure}. The dispatch mode took its place.",)
        count = self._iterations
        seen = f"operators of {count} iteration{'s' * (count > 1)} were seen by msdump-native." if count else ""
        sentence = native_sentence(refusal=self.refusal, has_seen=self.has_seen)
        return tuple(filter(None, (seen, f"{sentence}." if sentence else "")))

    def blind(self, is_blind: bool) -> None:
        """While it is blind, it sees nothing that runs: PyTorch compiles, and runs operators of its own for that."""
        self.flush()
        self._blind_depth += 1 if is_blind else -1

    def note_scope(self) -> None:
        """A module was called or left."""
        text = self._scopes.innermost
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append((ROOT if text is None else text, text is not None))
        self._observer.scope = number

    def flush(self) -> None:
        """Tell observers of what has run since the last call; before anything changes that its names depend on."""
        if not self.is_on or self._is_busy:
            return
        observer = self._observer
        observer.asks = True
        count = observer.count
        self._is_busy = True
        try:
            if not count:
                observer.drop()
            elif self._stage is None or not self._stage.is_watched:
                self.calls.skip()
            else:
                # Inside of a transform of `torch.func`, what reads a tensor would be transformed as well.
                with torch._C._DisableFuncTorch():
                    self.calls.show(self._stage, self._texts, self._optimizers())
                self._iterations += self._stage.iteration != self._last
                self._last = self._stage.iteration
            if observer.failure and not self.failure:
                self.failure = observer.failure
                log.error("msdump-native has stopped, the rest of the iteration is not dumped: %s", self.failure)
                self._session.count_lost(1)
        except Exception as error:
            # Whatever it is: it is the script whose line this is, and that goes on.
            log.debug("msdump-native", exc_info=True)
            self.failure = self.failure or f"{type(error).__name__}: {error}"
            self._session.count_lost(count)
            self._session.fail(RuntimeError(self.failure))
        finally:
            self._is_busy = False
        if self._ends and not self._is_asked:
            self.calls.break_off()
            self._ends = self.is_on = False
            self._observer.disable()

    def _ask(self, name: str, has_node: bool) -> bool:
        """Whether an operator that is about to run is to be recorded."""
        if self._is_busy or self._is_asked or self._ends or self._blind_depth:
            return False
        self._is_asked = True
        try:
            self._stage, waits = self._enter(overload_named(name), has_node)
            self._observer.asks = waits
            expected = self.calls.expected(self._stage)
            if expected is not None:
                self._observer.expect(*expected)
            return self._stage is not None and self._stage.is_watched and not self._ends
        finally:
            self._is_asked = False
