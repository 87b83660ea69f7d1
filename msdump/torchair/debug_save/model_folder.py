"""Folders of a debug save: one per graph that Dynamo found, and in it one per compilation of AOTAutograd's graphs."""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from torch.fx import GraphModule

from msdump.process.sessions import note_left
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.debug_log import NPUGRAPH_EX, incomplete, is_on, run_dir
from msdump.torchair.debug_save.safe_files import FILE_MODE, make_safe_dirs, write_safe_text
from msdump.torchair.passes.pipeline import GRAPH, REVISION

if TYPE_CHECKING:
    from msdump.torchair.ge.graph import GeGraph

torchair_log = logging.getLogger("torchair")

# Whose folder it is, for the end of a run.
_TOOLS = {NPUGRAPH_EX: "npugraph_ex"}
DYNAMO_FILE = "dynamo_out_graph.txt"
_DEFAULT_GE_TYPE = "pbtxt"
# Its operators and descriptors are filled in further.
OPTIMIZED_GE_GRAPH = "optimized_ge_graph"

# For each tool (`torchair`, `npugraph_ex`): the numbers of the saved backend calls of this process.
_numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)


class ModelFolder:
    """`model__{N}` of one backend call. Its number is bound to the call, so that a backward that is compiled much
    later, when other graphs came in between, still lands beside its own forward. Any thread may call it.
    """

    def __init__(self, root: Path, number: int) -> None:
        self.path = root / f"model__{number}"

    def save_dynamo_graph(self, module: GraphModule) -> None:
        """Write the graph as Dynamo found it."""
        self.write(self.path / DYNAMO_FILE, lambda: _readable(module))

    def open_phase(self, phase: str, config: CompilerConfig) -> PhaseFolder:
        """Folder of one compilation, with a count of its own. An inference graph is a forward one."""
        return PhaseFolder(self, "forward" if phase == "inference" else phase, config)

    def write(self, path: Path, text: Callable[[], str], mode: int = FILE_MODE) -> bool:
        """Write one file below; says once when that cannot be done."""

        def action() -> None:
            self.make(path.parent)
            write_safe_text(path, text(), mode)

        is_written = incomplete.guard(action)
        if is_written:
            note_left(f"{_TOOLS.get(self.path.parent.name, 'TorchAir')}'s debug save", self.path.parent)
        return is_written

    def make(self, folder: Path) -> None:
        """Make a folder below, link-free from the model's folder downwards.   Raises: WriteError."""
        for part in dict.fromkeys((self.path.parent, self.path, folder)):
            make_safe_dirs(part)


class PhaseFolder:
    """`forward`, `backward` or `joint` of a model: files `{NNN}_aot_{phase}_{stage}`, in the order of the stages.

    It watches the FX passes and the making of the GE graph, and belongs to the thread that compiles.
    """

    def __init__(self, model: ModelFolder, phase: str, config: CompilerConfig) -> None:
        self.model = model
        self.phase = phase
        self.path = model.path / phase
        self._ge_type = config.debug.graph_dump.type.value or _DEFAULT_GE_TYPE
        self._numbers = itertools.count()
        self._last: tuple[GraphModule, object, str] | None = None

    def save_graph(self, module: GraphModule) -> None:
        """Write the graph as AOTAutograd handed it over, file 000."""
        self.fx_graph(GRAPH, module)

    def fx_graph(self, name: str, module: GraphModule) -> None:
        """Write the graph as text, under the name of its stage."""
        self.model.write(self._file(name, "txt"), lambda: self._text(module))

    def ge_graph(self, name: str, graph: GeGraph) -> None:
        """Write the GE graph in the type of `debug.graph_dump`, pbtxt by default, under the name of its stage."""
        from msdump.torchair.graph_dump.emit import write_ge_graph

        path = self._file(name, self._ge_type)
        torchair_log.debug("[%s] %s: %d operators", self.phase, name, len(graph.ops))

        def action() -> None:
            self.model.make(self.path)
            write_ge_graph(graph, path, self._ge_type, is_optimized=name == OPTIMIZED_GE_GRAPH)

        incomplete.guard(action)

    def close(self) -> None:
        """Say where it all is."""
        torchair_log.debug("[%s] Full debug info saved to: %s", self.phase, self.path)

    def _file(self, name: str, ending: str) -> Path:
        return self.path / f"{next(self._numbers):03d}_aot_{self.phase}_{name}.{ending}"

    def _text(self, module: GraphModule) -> str:
        # Most passes change nothing, and printing a graph takes longer than they do.
        revision = module.meta.get(REVISION)
        if self._last is not None and revision is not None and self._last[:2] == (module, revision):
            return self._last[2]
        text = _readable(module)
        self._last = (module, revision, text)
        return text


def open_model(tool: str) -> ModelFolder | None:
    """Folder of the next backend call; None when nothing is saved.

    Edges:  calls while the debug save is off have no number, so the first one that is saved is `model__0`.
    Source: TorchAir counts in the branch that saves; each of its two packages has a counter.
    """
    if not is_on():
        return None
    with suppress(OSError):
        return ModelFolder(run_dir() / tool, next(_numbers[tool]))
    return None


def _readable(module: GraphModule) -> str:
    return str(module.print_readable(print_output=False))
