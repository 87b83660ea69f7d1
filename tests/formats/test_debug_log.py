"""Logs of PyTorch's DebugMode: what is read of them, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.debug_log import LoggedCall, LoggedTensor, is_debug_log, operator_names, read_debug_log

# Written by PyTorch 2.13, with record_nn_module, record_stack_trace and both hashes.
LOG = """\
    # File: net.py:9 in forward, code: return torch.relu(self.fc(x))
    [nn.Mod] Net
      [nn.Mod] Net.fc
        aten::t(t$0: f32[8, 4])  ->  t$1: f32[4, 8]  # {'input_hash': (((7.5, 92786),), {}), 'hash': (7.5, 92786)}
      aten::relu(t$2: bf16[4])  ->  t$3: bf16[4]  # {'input_hash': (((nan, 1),), {}), 'hash': (inf, 2)}

    # File: net.py:12 in <module>, code: torch.max(net(x), 1)
    aten::max.dim(t$3: f32[4, 8], 1)  ->  ('t$4: f32[4]', 't$5: i64[4]')  # {'input_hash': (((0.0, 0), None), {}), \
'hash': ((4.5, 3), (16.0, 0))}
    aten::_local_scalar_dense(t$6: b8[])  ->  False  # {'input_hash': (((1e-07, 0),), {'dtype': None}), 'hash': None}
"""


def read(folder: Path, text: str) -> list[LoggedCall]:
    path = folder / "log.txt"
    path.write_text(text)
    return read_debug_log(path)


def test_calls_tell_tensors_hashes_modules_and_lines(tmp_path: Path) -> None:
    transposed, relu, largest, scalar = read(tmp_path, LOG)
    assert (transposed.name, transposed.operator, transposed.depth, transposed.line) == (
        "aten::t", "aten.t.default", 4, 4,
    )  # fmt: skip
    assert transposed.module == "Net.fc" and relu.module == "Net" and largest.module == ""
    hashes = (("norm", 7.5), ("hash_tensor", 92786))
    assert transposed.inputs == (LoggedTensor("float32", (8, 4), hashes),)
    assert transposed.outputs == (LoggedTensor("float32", (4, 8), hashes),)
    assert relu.source is not None and (relu.source.path, relu.source.line) == ("net.py", 9)
    assert largest.source is not None and largest.source.line == 12
    assert math.isnan(relu.inputs[0].hashes[0][1]) and relu.outputs[0].hashes[0] == ("norm", math.inf)
    assert largest.operator == "aten.max.dim"
    assert largest.outputs == (
        LoggedTensor("float32", (4,), (("norm", 4.5), ("hash_tensor", 3))),
        LoggedTensor("int64", (4,), (("norm", 16.0), ("hash_tensor", 0))),
    )
    assert scalar.inputs == (LoggedTensor("bool", (), (("norm", 1e-7), ("hash_tensor", 0))),) and not scalar.outputs
    assert operator_names([relu, transposed, relu]) == [
        "aten.relu.default-op0", "aten.t.default-op0", "aten.relu.default-op1",
    ]  # fmt: skip


def test_functions_around_operators_and_distributed_ones_are_no_operators(tmp_path: Path) -> None:
    calls = read(
        tmp_path,
        "  torch.max(t: f32[4, 8]{requires_grad=True}, 1)  ->  torch.return_types.max(\n"
        "values='t: f32[4]{requires_grad=True}',\nindices='t: i64[4]{requires_grad=False}')\n"
        "      aten::max.dim(t: f32[4, 8]{requires_grad=True}, 1)  ->  ('t: f32[4]', 't: i64[4]')\n"
        "  <method 'add_' of 'torch._C.TensorBase' objects>(t: i64[], 1)  ->  t: i64[]\n"
        "    aten::mm(dt: f32[8, 8]| S(0), dt: f32[8, 32]| S(0))\n"
        "      redistribute_input [implicit] (1, S(0) -> R)\n"
        "      aten::mm(t: f32[1, 8], t: f32[8, 32])  ->  t: f32[1, 32]\n"
        "      -> output: S(0)\n",
    )
    assert [call.name for call in calls if call.is_operator] == ["aten::max.dim", "aten::mm"]
    assert [tensor.dtype for tensor in calls[0].outputs] == ["float32", "int64"]


def test_kernels_have_the_hashes_of_the_lines_behind_them(tmp_path: Path) -> None:
    (kernel,) = read(
        tmp_path,
        "    [triton] triton_poi_fused_0(in_ptr0=t: f32[8], out_ptr0=t: f16[4], xnumel=8)\n"
        "      # pre-kernel hashes: {in_ptr0: 1.5, out_ptr0: nan}\n"
        "      # post-kernel hashes: {in_ptr0: 1.5, out_ptr0: 2.5}\n\n",
    )
    assert kernel.is_operator and kernel.operator == "triton.triton_poi_fused_0"
    assert kernel.inputs[0] == LoggedTensor("float32", (8,), (("norm", 1.5),))
    assert kernel.outputs[1] == LoggedTensor("float16", (4,), (("norm", 2.5),))


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("hello\n", 1, "a call as DebugMode"),
        ("    aten::t(t: f32[8, 4])  ->  t: f32[4, 8]\n    step 3, loss 0.5\n", 2, "a call as DebugMode"),
        ("    aten::t(t: f32[8, 4", 1, "a call as DebugMode"),
        ("    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': 7.", 1, "numbers as"),
        ("    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': (7.5", 1, "numbers as"),
        ("    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': tensor(7.5)}", 1, "numbers as"),
        ("    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': 7.5}}", 1, "numbers as"),
        ("    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': (7.5]}", 1, "numbers as"),
        (f"    aten::t(t: f32[2])  ->  t: f32[2]  # {{'hash': {'[' * 200}}}", 1, "numbers as"),
        (f"    aten::t(t: f32[2])  ->  t: f32[2]  # {{'hash': {'9' * 30}}}", 1, "numbers as"),
        ("    aten::t(t: f32[2])  ->  ('t: f32[2]', 't: f32[2]')  # {'hash': (1.0, 2.0, 3.0)}", 1, "as many hashes"),
        ("    aten::t(t: f32[2, , 4])", 1, "a shape"),
        ("    # pre-kernel hashes: {a: 1.0}", 1, "hashes of a kernel behind"),
    ],
)  # fmt: skip
def test_what_debug_mode_does_not_write_is_refused(tmp_path: Path, text: str, line: int, expected: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'log.txt'}, line {line}: expected {expected}")
    assert ", got " in str(caught.value)


def test_a_file_without_a_call_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"expected calls .*, got a text without any"):
        read(tmp_path, "\n\n")
    (tmp_path / "raw.log").write_bytes(b"  aten::t(\xff)")
    with pytest.raises(FormatError, match="expected UTF-8 text, got byte 255"):
        read_debug_log(tmp_path / "raw.log")


def test_logs_are_known_by_their_names(tmp_path: Path) -> None:
    for name in ("a.txt", "b.LOG", "c.npy"):
        (tmp_path / name).write_text("")
    assert is_debug_log(tmp_path / "a.txt") and is_debug_log(str(tmp_path / "b.LOG"))
    assert not is_debug_log(tmp_path / "c.npy") and not is_debug_log(tmp_path) and not is_debug_log("gone.txt")


numbers = st.one_of(st.floats(min_value=0), st.integers(0, 2**64 - 1))
tensors = st.builds(
    lambda dtype, shape, value: LoggedTensor(
        dtype, tuple(shape), (("norm" if isinstance(value, float) else "hash_tensor", value),)
    ),
    st.sampled_from(["float32", "int64", "bool", "bfloat16", "complex64", "float8_e5m2"]),
    st.lists(st.integers(0, 2**40), max_size=4),
    numbers,
)
SHORT = {
    "float32": "f32", "int64": "i64", "bool": "b8", "bfloat16": "bf16", "complex64": "c64", "float8_e5m2": "f8e5m2",
}  # fmt: skip


def written(name: str, inputs: list[LoggedTensor], outputs: list[LoggedTensor], depth: int) -> str:
    """A line as DebugMode writes it: tensors as texts within a list, hashes of both sides."""
    texts = [[f"t: {SHORT[one.dtype]}{list(one.shape)}" for one in side] for side in (inputs, outputs)]
    hashes = [tuple(one.hashes[0][1] for one in side) for side in (inputs, outputs)]
    log = {"input_hash": ((*hashes[0], None), {"alpha": None}), "hash": hashes[1]}
    return f"{'  ' * depth}aten::{name}({', '.join(texts[0])}, 'x')  ->  {tuple(texts[1])}  # {log}"


@settings(max_examples=100, deadline=None)
@given(
    calls=st.lists(
        st.tuples(
            st.from_regex(r"[a-z_]{1,9}(\.[A-Za-z]{1,9})?", fullmatch=True), st.lists(tensors, max_size=3),
            st.lists(tensors, max_size=3), st.integers(1, 20),
        ), min_size=1, max_size=5,
    ), cut=st.integers(0, 10_000),
)  # fmt: skip
def test_what_is_written_is_read_and_a_log_that_was_cut_off_is_no_other_log(
    tmp_path_factory: pytest.TempPathFactory,
    calls: list[tuple[str, list[LoggedTensor], list[LoggedTensor], int]],
    cut: int,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = "\n".join(written(*call) for call in calls)
    found = read(folder, text)
    assert [(call.name, call.depth) for call in found] == [(f"aten::{call[0]}", call[3]) for call in calls]
    assert [repr((call.inputs, call.outputs)) for call in found] == [repr((tuple(x), tuple(y))) for _, x, y, _ in calls]
    try:
        part = read(folder, text[: cut % len(text)])
    except FormatError:
        return
    # One that ends where a whole line, or the hashes of its last line begin, is one that is shorter.
    assert repr(part[:-1]) == repr(found[: len(part) - 1])
    assert part[-1].name == found[len(part) - 1].name
