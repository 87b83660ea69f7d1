"""A seeded random sample of MindSpore's public functions, layers and Tensor methods, computed by it and by msdump.

Two Pythons take part, one with mindspore 2.7.0 (CPU, which does not need msdump) and one with msdump; they exchange
files. In the root of the repository:

    PYTHON_OF_MINDSPORE tests/reference/mindspore_sample.py collect calls.json --seed 36 --count 300
    PYTHON_OF_MINDSPORE tests/reference/mindspore_sample.py run calls.json theirs.jsonl
    PYTHON_OF_MSDUMP    tests/reference/mindspore_sample.py run calls.json ours.jsonl --msdump
    PYTHON_OF_MSDUMP    -m tests.reference.compare_samples theirs.jsonl ours.jsonl

`collect` draws names whose documented example runs on a CPU and keeps the arguments of the first call of each. `run`
makes calls of them: as they are, their gradients, with edge values (0, +-1, Inf, NaN), other dtypes, empty tensors, too
few arguments and arguments of a wrong type. It goes on with the next call where one ends the process.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import doctest
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

# Namespaces and the name under which `_at` finds them.
SPACES = ("ops", "nn", "Tensor", "mint", "mint.nn", "mint.nn.functional", "numpy")
# What a call may take before it is ended, in seconds.
LIMIT_S = 60
EDGES = (0.0, 1.0, -1.0, 0.5, 6.0, -0.0, 3.0, -3.0)
WILD = (0.0, math.inf, -math.inf, math.nan, 1.0, -1.0)
VARIANTS = ("plain", "grad", "edges", "edges-grad", "wild", "wild-grad", "ones-grad", "float16", "float64", "int32",
            "uint8", "bool", "empty", "text", "missing")  # fmt: skip


# -- arguments as JSON -------------------------------------------------------------------------------------------------


class NotPortableError(Exception):
    """An argument that only one of the two packages has: a function, a cell."""


def encoded(value: Any) -> Any:
    """An argument as JSON.   Raises: NotPortableError."""
    import mindspore as ms

    if isinstance(value, ms.Tensor):
        return {"tensor": encoded_array(value), "parameter": isinstance(value, ms.Parameter)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return {"array": of_array(value, value.dtype.name)}
    if isinstance(value, np.generic):
        return {"array": of_array(np.asarray(value), value.dtype.name)}
    if isinstance(value, list):
        return {"list": [encoded(item) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [encoded(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(key): encoded(item) for key, item in value.items()}}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    name = dtype_name(value)
    if name is not None:
        return {"dtype": name}
    raise NotPortableError(type(value).__name__)


def dtype_name(value: Any) -> str | None:
    """Name of a dtype of MindSpore, such as "float32"."""
    import mindspore as ms

    for name in ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                 "float32", "float64", "bfloat16", "complex64", "complex128"):  # fmt: skip
        if not isinstance(value, type) and value == getattr(ms, name):
            return name
    return None


def encoded_array(tensor: Any) -> Any:
    import mindspore as ms

    name = str(tensor.dtype).rpartition(".")[2].lower()
    return of_array((tensor.astype(ms.float32) if name == "bfloat16" else tensor).asnumpy(), name)


def of_array(array: Any, name: str) -> Any:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"data": data, "kind": array.dtype.str, "dtype": name, "shape": list(array.shape)}


def array_from(thing: Any) -> Any:
    return np.frombuffer(base64.b64decode(thing["data"]), thing["kind"]).reshape(thing["shape"]).copy()


def decoded(thing: Any, change: Callable[[Any], Any] = lambda array: array) -> Any:
    """The argument; `change` makes other tensors of its tensors."""
    import mindspore as ms

    if isinstance(thing, list):
        return [decoded(item, change) for item in thing]
    if not isinstance(thing, dict):
        return thing
    ((kind, value), *rest) = thing.items()
    if kind == "tensor":
        array, name = change(array_from(value)), value["dtype"]
        tensor = ms.Tensor(array)
        if name == "bfloat16" and array.dtype == np.float32:
            tensor = tensor.astype(ms.bfloat16)
        return ms.Parameter(tensor, name="parameter") if rest[0][1] else tensor
    if kind == "array":
        array = array_from(value)
        return array if array.ndim else array[()]
    if kind in ("list", "tuple"):
        items = [decoded(item, change) for item in value]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: decoded(item, change) for key, item in value.items()}
    if kind == "slice":
        return slice(*value)
    if kind == "dtype":
        return getattr(ms, value)
    return float(value) if kind == "float" else complex(*value)


# -- collecting calls --------------------------------------------------------------------------------------------------


def _at(path: str) -> Any:
    import mindspore
    import mindspore.mint.nn.functional
    import mindspore.nn
    import mindspore.numpy
    import mindspore.ops

    found: Any = mindspore
    for part in path.split("."):
        found = getattr(found, part)
    return found


def population() -> list[str]:
    """Public names with an example, or methods of which a function of `ops` has one; sorted."""
    found = []
    for space in SPACES:
        owner = _at(space)
        for name in sorted(dir(owner)):
            member = getattr(owner, name, None)
            if name.startswith("_") or not callable(member) or not examples_of(space, name):
                continue
            found.append(f"{space}.{name}")
    return found


def examples_of(space: str, name: str) -> str:
    text = getattr(getattr(_at(space), name, None), "__doc__", None) or ""
    if ">>>" not in text and space == "Tensor":
        text = getattr(getattr(_at("ops"), name, None), "__doc__", None) or ""
    return text if ">>>" in text else ""


class RecordedError(Exception):
    """The first call is known, which is enough."""


def call_of(path: str) -> dict[str, Any]:
    """The first call of a name in its example.   Raises: whatever the example raises, NotPortableError, LookupError."""
    space, _, name = path.rpartition(".")
    owner, target = _at(space), getattr(_at(space), name)
    text = examples_of(space, name)
    is_class = isinstance(target, type)
    # A method without an example of its own is called as the function of the same name.
    is_other = space == "Tensor" and f".{name}(" not in text.replace(f"ops.{name}(", "")
    calls: list[dict[str, Any]] = []

    def note(made: Any, args: Sequence[Any], kwargs: Any) -> None:
        calls.append({"path": path, "made": made, "args": encoded(list(args)), "kwargs": encoded(dict(kwargs))})
        raise RecordedError

    class Instance:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.made = [encoded(list(args)), encoded(dict(kwargs))]

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            note(self.made, args, kwargs)

        def __getattr__(self, attribute: str) -> Any:
            return lambda *args, **kwargs: self

    def function(*args: Any, **kwargs: Any) -> Any:
        note(None, args, kwargs)

    changed = (_at("ops"), name) if is_other else (owner, name)
    before = getattr(*changed)
    setattr(*changed, Instance if is_class else function)
    namespace: dict[str, Any] = {"__name__": "example"}
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(RecordedError):
            for example in doctest.DocTestParser().get_examples(text):
                exec(compile(example.source, "<example>", "single"), namespace)
    finally:
        setattr(*changed, before)
    if not calls:
        raise LookupError("its example does not call it")
    return calls[0]


def collect(target: Path, seed: int, count: int, only: str) -> None:
    prepare(False)
    names = [path for path in population() if not only or re.fullmatch(only, path)]
    order = np.random.default_rng(seed).permutation(len(names))
    calls: list[dict[str, Any]] = []
    skipped: Counter[str] = Counter()
    for index in order:
        if len(calls) == count:
            break
        path = names[index]
        try:
            call = call_of(path)
            result = computed(call, "plain")
        except Exception as error:  # noqa: BLE001 - an example may raise anything
            skipped[type(error).__name__] += 1
            continue
        if "error" in result:
            skipped[f"on a CPU: {result['error'][0]}"] += 1
            continue
        calls.append(call)
    target.write_text(json.dumps({"seed": seed, "calls": calls}))
    print(f"{len(calls)} calls of {len(names)} names; skipped {dict(skipped)}")


# -- running them ------------------------------------------------------------------------------------------------------


def prepare(is_msdump: bool) -> None:
    warnings.simplefilter("ignore")
    if is_msdump:
        import msdump

        msdump.install_aliases(prefer_real=False)
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)


def changer(variant: str) -> Callable[[Any], Any]:
    """What becomes of the tensors of a call."""
    kind = variant.partition("-")[0]
    place = iter(range(1000))

    def cycled(array: Any, values: Sequence[float]) -> Any:
        if array.dtype.kind != "f":
            return array
        shift = next(place)
        numbers = [values[(item * (1 + shift) + shift) % len(values)] for item in range(array.size)]
        return np.array(numbers, array.dtype).reshape(array.shape)

    def change(array: Any) -> Any:
        if kind == "edges":
            return cycled(array, EDGES)
        if kind == "wild":
            return cycled(array, WILD)
        if kind == "ones":
            return np.ones_like(array) if array.dtype.kind == "f" else array
        if kind in ("float16", "float64"):
            return array.astype(kind) if array.dtype.kind == "f" else array
        if kind in ("int32", "uint8", "bool"):
            return np.abs(array).astype(kind) if array.dtype.kind == "f" else array
        if kind == "empty":
            return array[:0] if array.ndim else array
        return array

    return change


def set_weights(net: Any) -> None:
    """Numbers that depend on the names alone: of both signs, so that no sum cancels, but for vectors."""
    import mindspore as ms

    parameters = net.get_parameters() if hasattr(net, "get_parameters") else ()
    for parameter in parameters:
        rng = np.random.default_rng(zlib.crc32(parameter.name.encode()))
        low = -0.5 if len(parameter.shape) > 1 else 0.1
        array = rng.uniform(low, low + 1, tuple(parameter.shape))
        parameter.set_data(ms.Tensor(array.astype(np.float32)).astype(parameter.dtype))


def bound(call: Any, variant: str) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """The function with its arguments."""
    import mindspore as ms

    space, _, name = call["path"].rpartition(".")
    change = changer(variant)
    args, kwargs = decoded(call["args"], change), decoded(call["kwargs"], change)
    is_method = space == "Tensor"
    if variant == "text" and len(args) > is_method:
        args[is_method] = "text"
    if variant == "missing" and len(args) > is_method:
        args = args[:-1]
    if call["made"] is not None:
        net = getattr(_at(space), name)(*decoded(call["made"][0]), **decoded(call["made"][1]))
        set_weights(net)
        return net, args, kwargs
    if space == "Tensor" and args and isinstance(args[0], ms.Tensor):
        receiver, *args = args
        return (lambda *rest, **options: getattr(receiver, name)(*rest, **options)), args, kwargs
    return getattr(_at(space), name), args, kwargs


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from flat(item)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from flat(value[key])
    else:
        yield value


def result_of(value: Any) -> Any:
    """Tensors with their dtypes, other values as text."""
    import mindspore as ms

    results: list[Any] = []
    for item in flat(value):
        if isinstance(item, ms.Tensor):
            results.append({"tensor": encoded_array(item)})
        elif item is None or isinstance(item, bool | int | float | str | complex):
            results.append({"plain": repr(item)})
        elif isinstance(item, np.ndarray):
            results.append({"array": of_array(item, item.dtype.name)})
        else:
            results.append({"plain": dtype_name(item) or type(item).__name__})
    return results


def computed(call: Any, variant: str, seed: int = 1) -> dict[str, Any]:
    """Results or the exception of a call."""
    import mindspore as ms

    ms.set_seed(seed)
    np.random.seed(seed)
    try:
        if variant.endswith("grad"):
            return {"results": result_of(gradients(call, variant))}
        function, args, kwargs = bound(call, variant)
        return {"results": result_of(function(*args, **kwargs))}
    except NoGradientError:
        return {"nothing": True}
    except Exception as error:  # noqa: BLE001 - what it raises is compared
        return {"error": [each.__name__ for each in type(error).__mro__], "text": str(error)[:600]}


class NoGradientError(Exception):
    """No operand is a float."""


def gradients(call: Any, variant: str) -> Any:
    """Of the sum of all float results times a ramp, for float operands and weights."""
    import mindspore as ms

    function, args, kwargs = bound(call, variant)
    space, _, name = call["path"].rpartition(".")
    if space == "Tensor":
        receiver = decoded(call["args"], changer(variant))[0]
        if isinstance(receiver, ms.Tensor):
            args = [receiver, *args]
            function = lambda own, *rest, **options: getattr(own, name)(*rest, **options)  # noqa: E731
    names = list(kwargs)
    operands = [*args, *kwargs.values()]
    is_float = [isinstance(each, ms.Tensor) and "loat" in str(each.dtype) for each in operands]
    slots = [slot for slot, is_one in enumerate(is_float) if is_one]
    if not slots:
        raise NoGradientError

    def loss(*tensors: Any) -> Any:
        given = list(operands)
        for slot, tensor in zip(slots, tensors, strict=True):
            given[slot] = tensor
        results = function(*given[: len(args)], **dict(zip(names, given[len(args) :], strict=True)))
        total: Any = 0.0
        for item in flat(results):
            if isinstance(item, ms.Tensor) and "loat" in str(item.dtype):
                ramp = np.cos(np.arange(math.prod(item.shape))).reshape(item.shape).astype(np.float32)
                total = total + (item.astype(ms.float32) * ms.Tensor(ramp)).sum()
        return total

    weights = list(function.trainable_params()) if hasattr(function, "trainable_params") else []
    tensors = [operands[slot] for slot in slots]
    if isinstance(loss(*tensors), float):
        raise NoGradientError
    positions = tuple(range(len(slots)))
    return ms.grad(loss, positions, weights=weights or None)(*tensors)


def run_some(calls_file: Path, results_file: Path, is_msdump: bool, first: int, only: str) -> None:
    """The part of `run` in a process that a call may end."""
    prepare(is_msdump)
    calls = json.loads(calls_file.read_text())["calls"]
    with results_file.open("a") as stream:
        for number in range(first, len(calls) * len(VARIANTS)):
            index, variant = divmod(number, len(VARIANTS))
            if only and not re.fullmatch(only, calls[index]["path"]):
                continue
            row = {"number": number, "path": calls[index]["path"], "variant": VARIANTS[variant]}
            stream.write(json.dumps({"begin": number}) + "\n")
            stream.flush()
            row.update(computed(calls[index], VARIANTS[variant]))
            if VARIANTS[variant] in ("plain", "grad") and "results" in row:
                row["is_random"] = computed(calls[index], VARIANTS[variant], 2).get("results") != row["results"]
            stream.write(json.dumps(row) + "\n")
            stream.flush()


def run(calls_file: Path, results_file: Path, is_msdump: bool, only: str) -> None:
    calls = json.loads(calls_file.read_text())["calls"]
    results_file.write_text("")
    total, first = len(calls) * len(VARIANTS), 0
    while first < total:
        command = [sys.executable, __file__, "_some", str(calls_file), str(results_file), "--first", str(first)]
        command += ["--only", only] if only else []
        process = subprocess.Popen(command + (["--msdump"] if is_msdump else []), stderr=subprocess.DEVNULL)
        size, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            if results_file.stat().st_size != size:
                size, since = results_file.stat().st_size, time.monotonic()
            elif time.monotonic() - since > LIMIT_S:
                process.kill()
        if process.returncode == 0:
            break
        lines = results_file.read_text().splitlines()
        last = json.loads(lines[-1]) if lines else {}
        if "begin" not in last:
            raise SystemExit(f"{sys.executable}: exit {process.returncode} before the first call.")
        index, variant = divmod(last["begin"], len(VARIANTS))
        row = {"number": last["begin"], "path": calls[index]["path"], "variant": VARIANTS[variant], "crash": True}
        with results_file.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        first = last["begin"] + 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["collect", "run", "_some"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--msdump", action="store_true", help="this Python has msdump in place of mindspore")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="only the names that this expression matches")
    given = parser.parse_args()
    files = [path.absolute() for path in given.files]
    if given.command == "_some":
        run_some(*files, given.msdump, given.first, given.only)
        return 0
    # MindSpore writes what it knows of errors below the working folder.
    with tempfile.TemporaryDirectory(prefix="mindspore-sample-") as folder:
        os.chdir(folder)
        if given.command == "collect":
            collect(files[0], given.seed, given.count, given.only)
        else:
            run(*files, given.msdump, given.only)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
