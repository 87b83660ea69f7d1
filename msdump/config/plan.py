"""Plan: one dump as pure data that answers for every step, operator and operand whether it is dumped.

MindSpore's JSON, ACL's acl.json and TorchAir's options all become a Plan; everything that dumps asks its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msdump.config.json_file import JsonFile
from msdump.config.ranges import EVERY_NUMBER, NumberRanges
from msdump.config.sampling import Sampler
from msdump.config.selection import Which
from msdump.tensors.records import INPUT, OUTPUT

SYNC, ASYNC = "sync", "async"
CPU, GPU, ASCEND = "CPU", "GPU", "Ascend"
DUMP_INPUT, DUMP_OUTPUT = 1, 2
# `op_debug_mode`: 1, 2 and 3 detect overflows, 4 exceptions.
OVERFLOW_ALL, EXCEPTION_MODE = 3, 4
# The form of an exception dump that is not one of ACL's scenes: the operands, in files as of any dump.
OPERANDS = "operands"


@dataclass(frozen=True)
class When:
    """Which steps.

    iterations         numbers as in folder names
    initial_iteration  number of the first step of a run
    is_device_enabled  False: this device is not in `support_device`, so Dump is off
    sampler            which of the iterations; None: all. It knows how long they took, and answers once for each
    """

    iterations: NumberRanges = EVERY_NUMBER
    initial_iteration: int = 0
    is_device_enabled: bool = True
    sampler: Sampler | None = None

    @property
    def is_every(self) -> bool:
        return self.iterations == EVERY_NUMBER and self.sampler is None

    def dumps(self, iteration: int) -> bool:
        if not self.is_device_enabled or iteration not in self.iterations:
            return False
        return self.sampler is None or self.sampler.takes(iteration)


@dataclass(frozen=True)
class OperandSelection:
    """Which operands of a selected operator. Parameters and constants count as outputs.

    Source: MindSpore, `input_output`; ACL, `dump_mode`.
    """

    inputs: bool = True
    outputs: bool = True

    @property
    def sides(self) -> tuple[str, ...]:
        """INPUT, OUTPUT or both."""
        return (INPUT,) * self.inputs + (OUTPUT,) * self.outputs

    @property
    def mask(self) -> int:
        """DUMP_INPUT, DUMP_OUTPUT or both."""
        return DUMP_INPUT * self.inputs | DUMP_OUTPUT * self.outputs


@dataclass(frozen=True)
class Saved:
    """What is saved of an operand.

    tensors         files of elements
    statistics      rows of numbers about them
    columns         of the statistics, in the words of the configuration; None = the columns of MindSpore's guide
    file_format     "npy" or "bin"
    is_host_layout  layouts as the script sees them; False: as the device has them
    """

    tensors: bool = True
    statistics: bool = False
    columns: tuple[str, ...] | None = None
    file_format: str = "npy"
    is_host_layout: bool = True


@dataclass(frozen=True)
class Trigger:
    """Event that triggers the dump of an operator; none by default.

    overflow         `op_debug_mode` 1, 2 or 3; 0 = overflows are no trigger
    overflow_number  how many overflows are kept; 0 = no limit
    exception        form of the files of an operator that raises: OPERANDS or a scene of ACL; "" = no trigger
    is_watcher       watched outputs are saved again after other operators, to find the operator that writes into them
    """

    overflow: int = 0
    overflow_number: int = 0
    exception: str = ""
    is_watcher: bool = False

    @property
    def op_debug_mode(self) -> int:
        """MindSpore's number; 0 = ordinary dump."""
        return EXCEPTION_MODE if self.exception else self.overflow


@dataclass(frozen=True)
class Where:
    """Where the files go.

    path           folder of all dumps
    is_path_given  False: an exception dump of ACL without `dump_path`; `path` is the current folder then
    net_name       of the network's folder
    budget_bytes   what it may take of the disk; None: what the environment says
    """

    path: Path
    is_path_given: bool = True
    net_name: str = ""
    device_id: int = 0
    rank_id: int = 0
    budget_bytes: int | None = None


@dataclass(frozen=True)
class How:
    """How the dump works.

    engine           SYNC or ASYNC
    device_target    CPU, GPU or ASCEND
    jit_level        "" unless the script chose one; "O0" decides on the folders of a dump through ACL
    is_acl_dump      both variables of MindSpore name the same file
    has_graph_files  asynchronous: graph files lie beside the tensors; MindSpore's dump has none there
    is_compiled_only
                     what `torch.compile` made is dumped, and code of the program around it is not
    kernels          the library that was chosen to compute operators, "" when none was
    container        "files", or "pack" for one archive in the place of each folder of an iteration; "" when the
                     configuration does not say
    """

    engine: str = ASYNC
    device_target: str = ASCEND
    jit_level: str = ""
    is_acl_dump: bool = False
    has_graph_files: bool = False
    is_compiled_only: bool = False
    kernels: str = ""
    container: str = ""


# What makes a flight recorder keep the last steps. Commands and calls do so in any case.
TRIGGERS = ("nonfinite", "rule", "spike", "exception", "hang", "signal", "replicas")


@dataclass(frozen=True)
class RecorderPlan:
    """A flight recorder: steps go to a ring, and to the folder of the dump when something happens.

    ring        folder of the ring; "" = tmpfs where it is large enough, else the folder of temporary files
    steps       how many steps with tensors are kept before the one that runs
    budget      bytes that the ring may take
    statistics  how many steps with statistics are kept
    on          names among TRIGGERS
    rules       (name, comparison, limit) of numbers that the script gives at the end of a step
    spike       by how many standard deviations a loss or a gradient norm must leave the last ones
    hang        seconds that a step takes at least before it may count as hanging
    after       steps behind a trigger that are kept as well
    distance    minimum number of steps between two automatic triggers
    count       how often steps are kept in all
    """

    ring: str = ""
    steps: int = 3
    budget: int = 8 << 30
    statistics: int = 200
    on: tuple[str, ...] = TRIGGERS
    rules: tuple[tuple[str, str, float], ...] = ()
    spike: float = 8.0
    hang: float = 60.0
    after: int = 1
    distance: int = 100
    count: int = 10


@dataclass(frozen=True)
class Plan:
    """One configuration, checked.   `source`: the user's file, byte for byte; `recorder`: None for an ordinary dump."""

    when: When
    which: Which
    operands: OperandSelection
    saved: Saved
    trigger: Trigger
    where: Where
    how: How
    source: JsonFile
    recorder: RecorderPlan | None = None

    def watches(self, iteration: int) -> bool:
        """True when this iteration may be dumped: the step of an exception is not known in advance."""
        return self.when.dumps(iteration) or (self.when.is_device_enabled and bool(self.trigger.exception))

    @property
    def measures_only(self) -> bool:
        """True when only numbers of a tensor are saved, which can be computed on its device."""
        # None stands for the columns of the guide, MD5 among them.
        has_digest = self.saved.columns is None or "md5" in self.saved.columns
        is_plain = not self.saved.tensors and self.saved.file_format != "bin" and not self.trigger.op_debug_mode
        return self.saved.statistics and is_plain and not has_digest

    @property
    def dumps_constants(self) -> bool:
        """Marks are for operators; a constant belongs to no cell."""
        return self.operands.outputs and not self.which.takes_marked

    def dumps_parameter(self, name: str) -> bool:
        """Parameters count as outputs and are selected by their names."""
        return self.when.is_device_enabled and self.operands.outputs and self.which.selects(name)

    def masks(self, full_names: Sequence[str], marks: Sequence[bool] | None = None) -> list[int]:
        """One mask per operator: 0, DUMP_INPUT, DUMP_OUTPUT or both.

        marks   whether the script marked the operator; None = it marked none
        """
        if self.which.takes_marked:
            selected = list(marks) if marks is not None else [False] * len(full_names)
        else:
            selected = [self.which.selects(full_name) for full_name in full_names]
        mask = self.operands.mask if self.when.is_device_enabled else 0
        return [mask if is_selected else 0 for is_selected in selected]
