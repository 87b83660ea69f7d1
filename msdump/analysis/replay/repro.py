"""A stand-alone script for a dumped operator, with its inputs: an attachment for a bug report."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from msdump.analysis.find.look_up import FoundOperator, find_operator
from msdump.analysis.replay._aten import is_operator
from msdump.analysis.replay._call import NUMPY, TORCH, DumpedCall, Script
from msdump.analysis.replay.replay import (
    call_of,
    kernel_definition,
    program_source,
    runner_of,
    script_of,
)
from msdump.analysis.steps import opened
from msdump.errors import ConfigError, KernelNotFoundError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import npy_array
from msdump.formats.selection import StepSelection
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs

# Data from the dump is written into the script as Python literals only.
_HEAD = '''"""Runs one operator on its dumped inputs and compares with its dumped outputs."""

import sys
from pathlib import Path

import numpy as np
{imports}
HERE = Path(__file__).parent
OPERATOR = {operator}
STEP = {step}
SOURCE_LINE = {line}
ATTRS = {attrs}
INPUTS = {inputs}
OUTPUTS = {outputs}


'''
_TAIL = """

def main():
    dumped = {{slot: np.load(HERE / name) for slot, name in OUTPUTS.items()}}
    computed = compute([np.load(HERE / name) for name in INPUTS])
    is_equal = True
    for slot, golden in dumped.items():
        mine = np.asarray(computed[slot]).reshape(golden.shape)
        wide = np.complex128 if np.iscomplexobj(golden) else np.float64
        mine, size = mine.astype(wide), golden.astype(wide)
        # NaN and Inf are equal to themselves, and as wrong as can be to everything else.
        is_same = (mine == size) | (np.isnan(mine) & np.isnan(size))
        with np.errstate(all="ignore"):
            error = np.where(is_same, 0.0, np.abs(mine - size))
        size = np.abs(np.where(np.isfinite(size), size, 0.0))
        relative = np.linalg.norm(error) / max(np.linalg.norm(size), 1e-300)
        print(f"output {{slot}}: {{golden.dtype}} {{golden.shape}}, largest error {{error.max(initial=0):.6g}}, "
              f"relative error {{relative:.6g}}")
        is_equal = is_equal and bool(relative <= {bound!r})
    print("the dumped outputs are what the inputs give" if is_equal else "the dumped outputs differ")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
"""
_COMPUTE = {
    NUMPY: "\n\ndef compute(arrays):\n    return run(arrays, ATTRS)\n",
    TORCH: "\n\ndef compute(arrays):\n    tensors = run([torch.from_numpy(array) for array in arrays], ATTRS)\n"
    "    return [tensor.detach().numpy() for tensor in tensors]\n",
}
_KERNEL = '''def compute(arrays):
    """No stand-alone form of this type is known: this one needs msdump (pip install msdump)."""
    return run_kernel({op_type}, arrays, ATTRS)
'''


def write_repro(
    dump: DumpDir | str | os.PathLike[str],
    name: str,
    target: str | os.PathLike[str],
    *,
    library: str = NUMPY,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    model: str | os.PathLike[str] | None = None,
) -> Path:
    """Write `repro.py` for an operator into a new folder, its inputs and outputs as .npy beside it; the script's path.

    library   "numpy" or "torch"; numpy falls back on msdump's kernel where no short form is known, and on the library
              that runs it for an operator of PyTorch or ONNX
    model     as of `replay_operator`

    Edges:   the script ends with 0 when the dumped outputs are what the inputs give, else with 1.
    Raises:  ConfigError as `replay_operator`, for a folder that is not empty, and for torch without an equivalent;
             KernelNotFoundError for an operator that cannot be run. Nothing is written then.
    """
    dump = opened(dump)
    match = find_operator(dump, name, StepSelection(rank, graph, iteration))
    call = call_of(dump, match, model)
    if not call.outputs:
        raise ConfigError(f"{match.operator.label}: expected dumped outputs to compare with, got none.")
    folder = Path(target)
    inputs = [f"input_{number}.npy" for number in range(len(call.inputs))]
    outputs = {slot.number: f"output_{slot.number}.npy" for slot in call.outputs}
    files: Mapping[str, bytes] = {}
    if call.script is not None or is_operator(call.op_type):
        script = _own_script(match, call)
        head = _head(match, script.imports, script.attrs, inputs, outputs)
        text, files = head + script.source + _TAIL.format(bound=_bound(match)), script.files
    else:
        if program_source(call.op_type, library) is None and library == NUMPY:
            kernel_definition(call.op_type)
        text = _script(match, library, call.attrs, inputs, outputs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder}: expected a new or empty folder, got one with files. Choose another one.")
        for name_of_file, array in zip(inputs, call.inputs, strict=True):
            _save(folder / name_of_file, array)
        for slot, array in call.outputs.items():
            _save(folder / outputs[slot.number], array)
        for name_of_file, content in files.items():
            (folder / name_of_file).write_bytes(content)
        program = folder / "repro.py"
        program.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder}: expected to write the script there, got: {error.strerror}.") from error
    return program


def _save(path: Path, array: Array) -> None:
    np.save(path, npy_array(np.array(array, order="C"), dtypes.dtype_from_numpy(array.dtype).name))


def _script(target: FoundOperator, library: str, attrs: Attrs, inputs: list[str], outputs: Mapping[int, str]) -> str:
    op_type = target.operator.op_type
    source = program_source(op_type, library)
    if source is None and library == TORCH:
        raise ConfigError(f"{target.operator.label}: expected an operator with a torch equivalent, got {op_type}.")
    imports = "import torch\nfrom torch.nn import functional\n" if library == TORCH else ""
    body = _COMPUTE[library] if source is not None else _KERNEL.format(op_type=literal(op_type))
    if source is None:
        imports = "from msdump.analysis.replay.replay import run_kernel\n"
    head = _head(target, imports, attrs, inputs, outputs)
    return head + (source or "") + body + _TAIL.format(bound=_bound(target))


def _own_script(target: FoundOperator, call: DumpedCall) -> Script:
    """Raises: KernelNotFoundError when the operator cannot be run here, as the script could not."""
    label, runner = target.operator.label, runner_of(call)
    try:
        computed = runner.runs[runner.fresh](call)
        script = script_of(call, computed)
    except ConfigError as error:
        problem = str(error).removeprefix(f"{call.op_type}: ")
        raise KernelNotFoundError(f"{label}: {problem}") from error
    slots = [slot.number for slot in call.outputs]
    if any(slot >= len(computed) for slot in slots):
        raise KernelNotFoundError(f"{label}: expected {max(slots) + 1} outputs, got {len(computed)} of this library.")
    assert script is not None
    return script


def _head(
    target: FoundOperator, imports: str, attrs: Mapping[str, object], inputs: list[str], outputs: Mapping[int, str]
) -> str:
    line = None if target.node is None else target.node.own_line
    return _HEAD.format(
        operator=literal(f"{target.operator.op_type} {target.operator.label}"),
        step=literal(str(target.key)),
        line=literal(None if line is None else f"{line}  {line.code.strip()}"),
        imports=imports,
        attrs=literal(dict(attrs)),
        inputs=literal(inputs),
        outputs=literal(dict(outputs)),
    )


def literal(value: object) -> str:
    """A plain value as a Python expression, on one line of ASCII.

    Edges:   NaN and the infinities are calls of `float`.
    Raises:  ConfigError for what is no text, number, truth value, None, or list, tuple or dict of these.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return ascii(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    raise ConfigError(f"attributes: expected plain values, got {type(value).__name__}. Use `msdump replay`.")


def _bound(target: FoundOperator) -> float:
    from msdump.analysis.distance.bounds import bounds_of

    return max((bounds_of(t.true_dtype, t.true_dtype).relative for t in target.operator.outputs.values()), default=0.0)
