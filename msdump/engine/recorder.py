"""`msdump.recorder`: a block whose last steps are kept in a ring, and written to the dump folder on a trigger."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msdump.engine import opening
from msdump.errors import ConfigError

if TYPE_CHECKING:
    from msdump.engine.recording.recorder import Recorder
    from msdump.process.report import Report


class Recording:
    """See `msdump.recorder`."""

    def __init__(self, dump: opening.DumpBlock) -> None:
        self._dump = dump

    def __enter__(self) -> Recording:
        self._dump.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder = self._recorder
        if recorder is not None and isinstance(error, Exception):
            recorder.trigger("exception", f"{type(error).__name__}: {error}".split("\n", 1)[0])
        self._dump.__exit__(kind, error, trace)

    def step(self, **values: Any) -> None:
        """The step ends here.

        values   numbers of it, or tensors of one element, such as `loss` and `grad_norm`: one that is not finite, or
                 far above the last ones of its name, is a trigger
        """
        recorder, session = self._recorder, self._dump.session
        if recorder is None or session is None:
            return
        recorder.note_values({name: _number(value) for name, value in values.items()})
        session.end_step()

    def trigger(self, why: str) -> bool:
        """Keep the last steps of all ranks, and the next one.   why: for people

        Returns: whether they are kept; not when that was done as often as `count` allows, or no step has run.
        """
        recorder = self._recorder
        return recorder is not None and recorder.trigger("command", why) is not None

    def close(self) -> None:
        """As `msdump.dump(...).close()`.   Raises: DumpError when steps that were to be kept are not on the disk."""
        self._dump.close()

    def report(self) -> Report | None:
        """Counts up to now; None when nothing has run."""
        return self._dump.report()

    @property
    def _recorder(self) -> Recorder | None:
        session = self._dump.session
        return None if session is None or not session.may_dump() else session.recorder


def recorder(
    path: str | os.PathLike[str],
    *,
    ring: str | os.PathLike[str] | None = None,
    steps: int = 3,
    budget: str | int = "8G",
    statistics: int = 200,
    on: Sequence[str] | None = None,
    config: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Recording:
    """Record what runs in a `with` block: its last steps lie in a ring of files, and on the disk after a trigger.

    path        folder that all ranks share; the steps that are kept go to `{path}/incident_0001/rank_N`
    ring        folder of the ring, best in tmpfs; None: /dev/shm where it has room
    steps       how many steps with all their tensors are kept
    budget      bytes that the ring may take
    statistics  how many steps with statistics are kept; 0: no statistics
    on          triggers: "nonfinite", "rule", "spike", "exception", "hang", "signal", "replicas"; None: all of them
    config      keys of `common_dump_settings`, such as `kernels` with `dump_mode` 1
    settings    further keys of `recorder_settings`: rules, spike, hang, after, distance, count

    Eager PyTorch is watched by a `msdump.watch` inside of the block; graphs of MindSpore and torch.compile are seen
    as they are compiled. Raises: ConfigError, here for wrong values, and with the first graph for a ring without room.
    """
    from msdump.statistics.stats import STATISTIC_CATEGORIES

    # A digest takes twenty times the time of all other statistics.
    columns = [category.name for category in STATISTIC_CATEGORIES if category.name != "md5"]
    common = {
        "dump_mode": 0,
        "path": os.path.abspath(path),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "full" if statistics else "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": list(range(64)),
        "statistic_category": columns,
        **(config or {}),
    }
    section: dict[str, Any] = {"steps": steps, "budget": budget, "statistics": statistics, **settings}
    section |= {} if ring is None else {"ring": os.path.abspath(ring)}
    section |= {} if on is None else {"on": list(on)}
    _check_keys(section)
    content = {
        "common_dump_settings": common,
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
        "recorder_settings": section,
    }
    return Recording(opening.dump(content))


def _check_keys(section: Mapping[str, Any]) -> None:
    from msdump.config.recorder import RecorderSettings
    from msdump.config.sections import unknown_keys

    unknown = unknown_keys(RecorderSettings, dict(section))
    if unknown:
        raise ConfigError(f"msdump.recorder: expected keys of recorder_settings, got others. {unknown[0]}")


def _number(value: Any) -> float:
    """Of a tensor, detached from autograd."""
    detach = getattr(value, "detach", None)
    return float(value if detach is None else detach())
