"""Attributes of operators that must agree, `attributes.csv`: their names and defaults in each dialect, in one form.

    differing_attributes(("GeLU", {}), ("aten_gelu_default", {"approximate": "none"}))
                                                            [("approximate", "tanh", "none")]

Columns: kind, attribute; names in the order in which they are looked for; the default of each dialect where a graph
file names none (empty: not known); the form, a function of `_FORMS`.
"""

from __future__ import annotations

import ast
import csv
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.operators.kinds import ATEN, MINDSPORE, MSPROBE, ONNX, dialects_of, kind_of

_COLUMNS = {"mindspore": MINDSPORE, "aten": ATEN, "onnx": ONNX, "msprobe": MSPROBE}
_Form = Callable[[Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class _Attribute:
    """One attribute of a kind.   form: brings values of all dialects to one form; gets the value and all attributes"""

    name: str
    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    form: _Form
    is_rest_in_onnx: bool


def differing_attributes(
    mine: tuple[str, Mapping[str, Any]], golden: tuple[str, Mapping[str, Any]]
) -> list[tuple[str, str, str]]:
    """Attributes of two operators of one kind that do not agree: name, mine's value and golden's.

    mine, golden   type, and attributes as the graph file has them
    Edges:         an attribute that one side does not tell, and whose default is not known, is left out.
    """
    kind = kind_of(mine[0])
    if kind != kind_of(golden[0]):
        return []
    differing = []
    for attribute in _attributes().get(kind, ()):
        x, y = (_value(attribute, *side) for side in (mine, golden))
        if x is not None and y is not None and not _is_equal(x, y):
            differing.append((attribute.name, _plain(x), _plain(y)))
    return differing


@functools.cache
def _attributes() -> Mapping[str, tuple[_Attribute, ...]]:
    text = Path(__file__).with_name("attributes.csv").read_text(encoding="utf-8")
    table: dict[str, tuple[_Attribute, ...]] = {}
    for cells in csv.DictReader(text.splitlines()):
        defaults = {dialect: _read(cells[column]) for column, dialect in _COLUMNS.items() if cells[column]}
        attribute = _Attribute(
            cells["attribute"],
            tuple(cells["names"].split()),
            defaults,
            _FORMS[cells["form"]],
            cells["form"] == "rest-in-onnx",
        )
        table[cells["kind"]] = (*table.get(cells["kind"], ()), attribute)
    return table


def _read(cell: str) -> Any:
    try:
        return ast.literal_eval(cell)
    except ValueError:
        return cell


def _value(attribute: _Attribute, op_type: str, attributes: Mapping[str, Any]) -> Any:
    name = next((name for name in attribute.names if attributes.get(name) is not None), None)
    if name is None:
        # MindSpore and ONNX have many names in common: a default that is not that of both is not known.
        defaults = [attribute.defaults.get(dialect) for dialect in dialects_of(op_type)]
        value = defaults[0] if defaults and all(one == defaults[0] for one in defaults) else None
    else:
        value = attributes[name]
    if value is None:
        return None
    formed = attribute.form(value, attributes)
    return 1 - formed if attribute.is_rest_in_onnx and ONNX in dialects_of(op_type) else formed


# -- forms -------------------------------------------------------------------------------------------------------------


def _as_it_is(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return value


def _flag(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return bool(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _spatial(value: Any, _attributes: Mapping[str, Any]) -> Any:
    """Steps in space alone: MindSpore writes those of batch and channels as well."""
    if not _is_list(value):
        return value
    items = tuple(value)[2:] if len(value) in (4, 5) and tuple(value)[:2] == (1, 1) else tuple(value)
    return items[0] if items and len(set(items)) == 1 else items


def _pads(value: Any, attributes: Mapping[str, Any]) -> Any:
    """One number where all sides are padded alike; numbers of each side; or "same"."""
    mode = attributes.get("pad_mode", attributes.get("auto_pad"))
    name = str(mode).lower() if mode is not None else ""
    if name in ("same", "1", "same_upper", "same_lower"):
        return "same"
    if name in ("valid", "2"):
        return 0
    if not _is_list(value):
        return value
    items = tuple(value)
    return items[0] if items and len(set(items)) == 1 else (items or 0)


def _text(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return str(value).lower()


def _corners(value: Any, attributes: Mapping[str, Any]) -> Any:
    mode = attributes.get("coordinate_transformation_mode")
    return value if mode is None else str(mode) == "align_corners"


def _item(value: Any, _attributes: Mapping[str, Any]) -> Any:
    """A tuple of one item as that item."""
    return value[0] if _is_list(value) and len(value) == 1 else value


def _reduction(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return {0: "none", 1: "mean", 2: "sum", "0": "none", "1": "mean", "2": "sum"}.get(value, value)


_FORMS: Mapping[str, _Form] = {
    "": _as_it_is,
    "corners": _corners,
    "flag": _flag,
    "item": _item,
    "pads": _pads,
    "reduction": _reduction,
    "rest-in-onnx": _as_it_is,
    "spatial": _spatial,
    "text": _text,
}


def _is_equal(x: Any, y: Any) -> bool:
    if isinstance(x, tuple) or isinstance(y, tuple):
        left, right = (tuple(side) if _is_list(side) else (side,) for side in (x, y))
        if len(left) != len(right):
            # One number for every side, or a number for each end of each side.
            longer, shorter = (left, right) if len(left) > len(right) else (right, left)
            return len(longer) % len(shorter) == 0 and shorter * (len(longer) // len(shorter)) == longer
        return all(map(_is_equal, left, right))
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return math.isclose(x, y, rel_tol=1e-6)
    return bool(x == y)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
