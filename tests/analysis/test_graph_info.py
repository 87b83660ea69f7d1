"""Where values come from, through chains of nodes that only pass tensors on."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.graph_info import GraphFiles, Origin, _Origins
from msdump.formats.dump_dir import DumpDir
from msdump.graph.graph import INPUT, PARAMETER, SAVED, Graph
from msdump.graph.ir import ir_text
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.types import TensorType
from tests.analysis.small_dump import floats, write_dump

Steps = dict[str, Origin | tuple[str, int | None] | None]
NAMES = [str(number) for number in range(8)]
STEPS = st.one_of(
    st.none(),
    st.builds(Origin, st.sampled_from(["conv", "add"]), st.sampled_from([None, 0])),
    st.tuples(st.sampled_from(NAMES), st.none() | st.integers(0, 5)),
)


def walked(steps: Steps, value: str) -> Origin | None:
    """One value after the other, remembering nothing."""
    slot = None
    for _ in range(len(steps) + 1):
        step = steps[value]
        if not isinstance(step, tuple):
            return step if step is None or step.slot is None else Origin(step.name, slot or step.slot)
        slot = slot if step[1] is None else step[1]
        value = step[0]
    return None


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, STEPS)), st.lists(st.sampled_from(NAMES), min_size=1))
def test_origins_are_those_of_a_plain_walk(steps: Steps, asked: list[str]) -> None:
    origins = _Origins(steps.__getitem__)
    for value in asked:
        assert origins.of(value) == walked(steps, value)


def test_a_long_chain_is_walked_once(alarm: None) -> None:
    """Of 200,000 values that all pass one tensor on, each asked for: the square of that takes hours."""
    size = 200_000
    steps: Steps = {str(number): (str(number - 1), None) for number in range(1, size)}
    steps["0"] = Origin("conv", 0)
    origins = _Origins(steps.__getitem__)
    assert all(origins.of(str(number)) == Origin("conv", 0) for number in reversed(range(size)))


def test_data_are_told_from_parameters(tmp_path: Path) -> None:
    """A parameter of one graph may be saved for another one, where it is an input; a damaged file tells of nothing."""
    root = write_dump(tmp_path, [("Default/ReLU-op0", {("output", 0): floats(1)})])
    folder = root / "rank_0/graphs"
    folder.mkdir()
    relu = Primitive("ReLU", definition=PrimitiveDef("ReLU", input_names=("x",)))
    inputs = {0: {"x": INPUT, "w": PARAMETER}, 1: {"w": SAVED, "tangents_1": INPUT}}
    for graph_id, kinds in inputs.items():
        graph = Graph(f"kernel_graph_{graph_id}", graph_id)
        for name, kind in kinds.items():
            value = graph.add_input(name, TensorType("float32", (1,)), kind)
            graph.outputs.append(graph.add_foreign_node(relu, [value], [value.type], "Default").outputs[0])
        graph.number()
        (folder / f"ms_output_trace_code_graph_{graph_id}.ir").write_text(ir_text(graph))
    (folder / "ms_output_trace_code_graph_2.ir").write_text("%para1_y : damaged")
    assert GraphFiles(DumpDir.open(root)).data_inputs == {"x", "tangents_1"}
