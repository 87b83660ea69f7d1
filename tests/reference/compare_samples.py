"""What differs between two results of tests/reference/mindspore_sample.py, MindSpore's and msdump's.

    python -m tests.reference.compare_samples theirs.jsonl ours.jsonl

Differences are listed by kind, the most frequent kind first; what docs/compatibility.md gives a reason for (`EXPECTED`)
is only counted. It ends with 1 when anything is left.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.mindspore_sample import array_from

WIDER = "dtypes that MindSpore refuses and msdump computes"
GRADIENTS = "gradients that a CPU computes otherwise"
NO_KERNEL = "dtypes and gradients for which a CPU of MindSpore has no kernel"
MISSING = "a name that docs/api-coverage.md lists as missing"
# Expressions of `name#variant#kind` -> why that is no error: a row of docs/compatibility.md.
EXPECTED: dict[str, str] = {
    "#missing name$": MISSING,
    "#MindSpore has no kernel$": NO_KERNEL,
    "#MindSpore ends the process$": NO_KERNEL,
    r"#only MindSpore refuses \(empty\)$": "tensors without elements",
    r"#empty#": "tensors without elements",
    r"#only MindSpore refuses \((bool|uint8|int32|float16|float64)\)$": WIDER,
    r"#only MindSpore refuses \(\S*grad\)$": NO_KERNEL,
    r"#wild(-grad)?#(values|where NaN is)$": "NaN and Inf",
    r"(eig|lstsq|pinv)#wild(-grad)?#only msdump refuses$": "NaN and Inf",
    r"(MatrixInverse|inverse)#ones-grad#only msdump refuses$": "singular matrices",
    r"pinv#ones-grad#": "singular matrices",
    r"(SeLU|selu|digamma|LGamma|L2Normalize|acosh|LinSpace|linspace|FastGelu)#\S*grad#": GRADIENTS,
    r"(nplace_add|nplace_update|InplaceUpdateV2|InplaceAdd|IndexFill)#\S*grad#": GRADIENTS,
    r"(TensorScatter(Div|Mul))#\S*grad#": GRADIENTS,
    r"(ops.var|Tensor.var|numpy.power|ops.pow|remainder)#\S*grad#": GRADIENTS,
    r"\.div#edges": "a divisor of -0",
    r"(igammac?|IGamma)#": "the incomplete gamma functions",
    r"(var|cov|nansum|std)#(int32|uint8)#values$": "statistics of integers",
    r"(add|subtract|sub|mul)#bool#": "arithmetic of bools",
    r"(LeakyReLU|leaky_relu|arctan|ReLU|hardtanh|Hardtanh)#(uint8|bool)#dtype": "arithmetic of bools",
    r"#dtype int64 \| (int32|uint8|int8)$": "dtypes that changed after 2.3",
    r"numpy.trunc#float64#dtype": "dtypes that changed after 2.3",
    r"(AvgPool1d|AdaptiveAvgPool3d|Dropout2D)#(int32|uint8)#": "poolings and dropout of integers",
    r"assign_value#\S+#only msdump refuses$": "Tensor.assign_value of another shape",
    r"(StandardNormal|standard_normal)#": "random numbers",
    r"ops.eig#\S+#values$": "signs of eigenvectors",
    r"IOU#float64#": "boxes without area",
    r"ops.softsign|nn.Softsign": "NaN and Inf",
    r"MatrixSetDiagV3#missing": "operands of diagonals that have a default",
    r"Transformer\w+Layer#\S*grad#values$": "gradients of transformer layers",
    r"#bool#error class": WIDER,
    r"RReLU#uint8#error class": WIDER,
}


def rows_of(file: Path) -> dict[int, dict[str, Any]]:
    rows = map(json.loads, file.read_text().splitlines())
    return {row["number"]: row for row in rows if "begin" not in row}


def difference(theirs: Any, ours: Any) -> tuple[str, str] | None:
    """The kind of a difference and what differs; None: there is none."""
    if "crash" in ours:
        return "msdump ends the process", ""
    if "crash" in theirs:
        return "MindSpore ends the process", ""
    if "nothing" in theirs and "nothing" in ours:
        return None
    if "error" in theirs or "error" in ours:
        return _error_difference(theirs, ours, theirs["variant"])
    first, second = theirs.get("results", []), ours.get("results", [])
    if len(first) != len(second):
        return "number of results", f"{len(first)} | {len(second)}"
    for slot, (one, other) in enumerate(zip(first, second, strict=True)):
        found = _result_difference(one, other)
        if found is not None:
            return found[0], f"result {slot}: {found[1]}"
    return None


# What MindSpore says where only this device lacks a kernel for a dtype, or has none at all.
_NO_KERNEL = re.compile(
    r"[Uu]nsupported (input )?data type|Not found op|must be a type of|Kernel select failed|not supported on|"
    "unregistered"
)


def _error_difference(theirs: Any, ours: Any, variant: str) -> tuple[str, str] | None:
    if "error" in theirs and "error" in ours:
        # Where nothing checks an argument MindSpore raises what Python raises.
        families = {"TypeError", "ValueError"} if variant in ("text", "missing") else {theirs["error"][0]}
        if families & set(ours["error"]):
            return None
        both = f"{theirs['text'][:120]!r} | {ours['error'][0]} {ours['text'][:160]!r}"
        return f"error class {theirs['error'][0]}", both
    if "error" in theirs:
        text = theirs["text"]
        if _NO_KERNEL.search(text):
            return "MindSpore has no kernel", text[:160]
        return f"only MindSpore refuses ({variant})", f"{theirs['error'][0]} {text[:160]!r}"
    return "only msdump refuses", f"{ours['error'][0]} {ours['text'].partition(': ')[2][-200:]!r}"


def _result_difference(one: Any, other: Any) -> tuple[str, str] | None:
    if one.keys() != other.keys():
        return "kind of result", f"{_brief(one)} | {_brief(other)}"
    ((kind, first),) = one.items()
    ((_, second),) = other.items()
    if kind == "plain":
        return None if first == second else ("plain value", f"{first} | {second}")
    if first["shape"] != second["shape"]:
        return "shape", f"{first['shape']} | {second['shape']}"
    if first["dtype"] != second["dtype"]:
        return f"dtype {first['dtype']} | {second['dtype']}", ""
    a, b = array_from(first), array_from(second)
    with np.errstate(all="ignore"):
        tolerance = {"float16": 2e-2, "bfloat16": 5e-2}.get(first["dtype"], 2e-4)
        finite = np.abs(a[np.isfinite(a)]) if a.dtype.kind in "fc" else np.abs(a)
        near = tolerance * max(1.0, float(finite.max(initial=0)))
        if np.allclose(a, b, tolerance, near, equal_nan=a.dtype.kind in "fc"):
            return None
        if a.dtype.kind in "fc" and not np.array_equal(np.isnan(a), np.isnan(b)):
            return "where NaN is", f"{a.ravel()[:8]} | {b.ravel()[:8]}"
    return "values", f"{a.ravel()[:8]} | {b.ravel()[:8]}"


def _brief(result: Any) -> str:
    ((kind, value),) = result.items()
    return str(value) if kind == "plain" else f"{kind} {value['dtype']}{value['shape']}"


def compare(their_file: Path, our_file: Path, is_all: bool) -> int:
    theirs, ours = rows_of(their_file), rows_of(our_file)
    random = {row["path"] for row in theirs.values() if row.get("is_random")}
    missing = {
        row["path"] for row in ours.values() if "in msdump" in row.get("text", "") and "AttributeError" in row["error"]
    }
    found: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    expected: Counter[str] = Counter()
    for number, row in theirs.items():
        if number not in ours:
            continue
        differs = ("missing name", "") if row["path"] in missing else difference(row, ours[number])
        if differs is None or (row["path"] in random and differs[0] in ("values", "where NaN is")):
            continue
        place = f"{row['path']}#{row['variant']}#{differs[0]}"
        reason = next((why for pattern, why in EXPECTED.items() if re.search(pattern, place)), None)
        if reason is not None and not is_all:
            expected[reason] += 1
        else:
            found[differs[0]][row["path"]].append((row["variant"], differs[1]))
    for kind, by_path in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"\n== {kind}: {len(by_path)} names")
        for path, cases in by_path.items():
            print(f"  {path} [{' '.join(variant for variant, _ in cases)}]: {cases[0][1]}")
    names, left = {row["path"] for row in theirs.values()}, sum(map(len, found.values()))
    print(f"\n{len(names)} names, {len(theirs)} calls, {left} differences of a name and a kind")
    for reason, number in expected.most_common():
        print(f"  {number} calls: {reason}")
    return 1 if left else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("theirs", type=Path, help="what MindSpore computed")
    parser.add_argument("ours", type=Path, help="what msdump computed")
    parser.add_argument("--all", action="store_true", help="also what docs/compatibility.md gives a reason for")
    given = parser.parse_args()
    return compare(given.theirs, given.ours, given.all)


if __name__ == "__main__":
    raise SystemExit(main())
