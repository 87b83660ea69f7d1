"""dump.json of msprobe: what mindstudio-probe 26.2 wrote is read, and what is damaged is said."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.msprobe_json import (
    Frame,
    as_json,
    dump_content,
    read_msprobe_arguments,
    read_msprobe_dump,
    read_msprobe_json,
    read_msprobe_parents,
    read_msprobe_stacks,
    stack_content,
)
from msdump.formats.paths.parse import MSPROBE, msprobe_forward, parse_folder, parse_msprobe_name
from msdump.tensors.records import INPUT, OUTPUT

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "msprobe"
NAN = GOLDEN / "nan" / "step0" / "proc1" / "dump.json"


def test_rows_of_a_real_file() -> None:
    rows = read_msprobe_json(NAN)
    by_name = {(row.op_name, row.io, row.slot): row for row in rows}
    assert len(by_name) == len(rows) == 52
    log = by_name["Torch.log.0.forward", INPUT, 0], by_name["Torch.log.0.forward", OUTPUT, 0]
    assert (log[0].op_type, log[0].dtype, log[0].shape, log[0].size_bytes) == ("Torch.log", "float32", (3, 8), 96)
    assert (log[0].max, log[0].min, log[0].avg) == (0.6121315956115723, -1.0, -0.7937090992927551)
    for number in (log[1].max, log[1].min, log[1].avg, log[1].l2norm):
        assert number is not None and math.isnan(number)
    module = [row for row in rows if row.op_name == "Module.fc1.Linear.forward.0"]
    assert [(row.io, row.slot, row.shape) for row in module] == [
        (INPUT, 0, (3, 4)), (INPUT, 1, (8, 4)), (INPUT, 2, (8,)), (OUTPUT, 0, (3, 8)),
    ]  # fmt: skip
    assert {row.op_type for row in module} == {"Linear"}
    gradients = [row for row in rows if "parameters_grad" in row.op_name]
    assert {row.io for row in gradients} == {OUTPUT} and len(gradients) == 4
    # The second input of a backward that has no gradient keeps its place.
    backward = [row.slot for row in rows if row.op_name == "Functional.linear.0.backward" and row.io == OUTPUT]
    assert backward == [0, 2]


def test_a_checksum_is_no_md5() -> None:
    assert {row.md5 for row in read_msprobe_json(GOLDEN / "crc" / "step0" / "proc1" / "dump.json")} == {None}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys that lead to each value inside of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*above, key)
        yield from places(inner, (*above, key))


CONTENT = NAN.read_text(encoding="utf-8")


@settings(max_examples=40)
@given(st.sampled_from(list(places(json.loads(CONTENT)))), JSON)
def test_any_value_anywhere_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, keys: tuple[Any, ...], value: Any
) -> None:
    content = holder = json.loads(CONTENT)
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    path = tmp_path_factory.mktemp("damaged") / "dump.json"
    path.write_text(json.dumps(content))
    try:
        rows = read_msprobe_json(path)
    except FormatError as error:
        text = str(error)
    else:
        text = str(path)
        assert all(row.io in (INPUT, OUTPUT) and row.slot >= 0 for row in rows)
    assert str(path) in text


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"data": 5}', b'{"data": {"x": 1}}', b"[" * 9000, b"\xff"]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"dump\.json"):
        read_msprobe_json(path)


@pytest.mark.parametrize(
    ("folder", "rank", "iteration"),
    [
        ("step3/rank12", 12, 3),
        ("step0/proc77", None, 0),
        ("step1/rank", None, 1),
        ("a/step2/rank0/dump_tensor_data", 0, 2),
    ],
)
def test_places(folder: str, rank: int | None, iteration: int) -> None:
    levels = parse_folder(("", *folder.split("/")))
    assert (levels.grammar, levels.rank_id, levels.iteration) == (MSPROBE, rank, iteration)


@pytest.mark.parametrize("folder", ["step/rank0", "stepx/rank0", "step3", "step3/rankx", "step3/rank0/a/b"])
def test_folders_of_others(folder: str) -> None:
    assert parse_folder(("", *folder.split("/"))).grammar != MSPROBE


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Functional.linear.0.forward.input.1.pt", ("Functional.linear.0.forward", INPUT, 1, None, None)),
        ("Cell.seq.0.Dense.forward.0.output.0.npy", ("Cell.seq.0.Dense.forward.0", OUTPUT, 0, None, None)),
        ("Tensor.split.2.backward.output.0.3.pt", ("Tensor.split.2.backward", OUTPUT, 0, 3, None)),
        (
            "Module.a.b.Linear.forward.0.parameters.weight.pt",
            ("Module.a.b.Linear.forward.0", INPUT, None, None, "weight"),
        ),
        (
            "Module.a.Linear.parameters_grad.0.bias.pt",
            ("Module.a.Linear.parameters_grad.0", OUTPUT, None, None, "bias"),
        ),
    ],
)
def test_names(name: str, expected: tuple[Any, ...]) -> None:
    parsed = parse_msprobe_name(name)
    assert parsed is not None
    slot = parsed.slot if expected[2] is not None else None
    assert (parsed.op_name, parsed.io, slot, parsed.part, parsed.keyword) == expected


@given(st.text(max_size=40) | st.text(alphabet="ab.0input/", max_size=30).map(lambda text: f"{text}.pt"))
def test_other_names(text: str) -> None:
    parsed = parse_msprobe_name(text)
    assert parsed is None or text.startswith(parsed.op_name)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": math.nan, "Min": -1.0, "Mean": 1.0}
    content = {"Torch.add.0.forward": {"input_args": [{**tensor, "Norm": 2.0}], "input_kwargs": {}, "output": []}}
    path = tmp_path / "dump.json"
    path.write_bytes(as_json(dump_content("statistics", "L1", None, content)))
    (row,) = read_msprobe_json(path)
    assert (row.op_name, row.shape, row.min, row.l2norm) == ("Torch.add.0.forward", (2,), -1.0, 2.0)
    assert row.max is not None and math.isnan(row.max)
    head = {key: value for key, value in json.loads(path.read_bytes()).items() if key != "data"}
    assert head == {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}


def test_stacks_are_numbered() -> None:
    content = stack_content({("inner", "outer"): ["a", "b"], (): ["c"]})
    assert json.loads(as_json(content)) == {"0": [["a", "b"], ["inner", "outer"]], "1": [["c"], []]}


FRAMES = (
    "File /a/in, side.py, line 3, in forward, \n y = f(x)",
    "File /a/train.py, line 12, in <module>, \n g(1)\n  + 2",
)
LINES = (Frame("/a/train.py", 12, "g(1)"), Frame("/a/in, side.py", 3, "y = f(x)"))


def test_frames_of_stacks_are_outermost_first(tmp_path: Path) -> None:
    path = tmp_path / "stack.json"
    path.write_bytes(as_json(stack_content({("operator a", *FRAMES): ["a", "b"], (): ["c"]})))
    assert read_msprobe_stacks(path) == {"a": LINES, "b": LINES, "c": ()}
    path.write_text(json.dumps({"a": FRAMES, "b": ["x" * 20_000]}))  # the form of msprobe 1.x
    assert read_msprobe_stacks(path) == {"a": LINES, "b": ()}


def test_stacks_that_msprobe_wrote(tmp_path: Path) -> None:
    content = json.loads((GOLDEN / "debugger" / "mix.json").read_text())["step1"]["stack.json"]
    path = tmp_path / "stack.json"
    path.write_text(json.dumps(dict(enumerate(content)) if isinstance(content, list) else content))
    assert read_msprobe_stacks(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"0": 5}', b'{"0": [["a"], [5]]}', b'{"0": [[[]], []]}', b"\xff"]
)
def test_damaged_stacks_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "stack.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"stack\.json"):
        read_msprobe_stacks(path)


def test_arguments_that_are_no_tensors(tmp_path: Path) -> None:
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1}
    number, text = {"type": "int", "value": -1}, {"type": "str", "value": "tanh"}
    given = [tensor, number, [number, number], [tensor], None, {"type": "slice", "value": [0, 1]}]
    records = {"f": {"input_args": given, "input_kwargs": {"form": text, "out": tensor}}, "g": {"input": []}}
    path = tmp_path / "dump.json"
    path.write_bytes(as_json(dump_content("statistics", "L1", None, records)))
    assert read_msprobe_arguments(path) == {"f": {"argument 1": -1, "argument 2": [-1, -1], "form": "tanh"}, "g": {}}


@pytest.mark.parametrize(
    ("record", "forward"),
    [
        ("Torch.sqrt.0.backward", "Torch.sqrt.0.forward"),
        ("Module.a.Net.backward.2", "Module.a.Net.forward.2"),
        ("Module.a.Net.parameters_grad.0", "Module.a.Net.forward.0"),
        ("Torch.sqrt.0.forward", "Torch.sqrt.0.forward"),
        ("backward", "backward"),
    ],
)
def test_the_forward_call_of_a_record(record: str, forward: str) -> None:
    assert msprobe_forward(record) == forward


def test_whose_functions_the_records_name(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    for head, framework in (({}, "pytorch"), ({"framework": "mindspore"}, "mindspore"), ({"framework": 7}, "pytorch")):
        path.write_text(json.dumps({**head, "data": {"f": {}}}))
        assert read_msprobe_dump(path) == (framework, {"f": {}})


def test_parents_of_records(tmp_path: Path) -> None:
    path = tmp_path / "construct.json"
    path.write_text(json.dumps({"f": "Module.m.M.forward.0", "Module.m.M.forward.0": None, "g": ["Module", 1]}))
    assert read_msprobe_parents(path) == {"f": "Module.m.M.forward.0"}
    path.write_text("[]")
    with pytest.raises(FormatError, match="expected an object of records"):
        read_msprobe_parents(path)
