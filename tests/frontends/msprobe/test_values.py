"""JSON of arguments that are no tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from msdump.frontends.msprobe.values import Describer  # noqa: E402

DESCRIBER = Describer(lambda tensor, path: ["tensor", *path], lambda array, path: ["array", *path])


class Named(NamedTuple):
    left: Any
    right: Any


@dataclass
class Data:
    inner: Any


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, {"type": "bool", "value": True}),
        (3, {"type": "int", "value": 3}),
        (0.5, {"type": "float", "value": 0.5}),
        ("a", {"type": "str", "value": "a"}),
        (..., {"type": "ellipsis", "value": "..."}),
        (slice(1, None, np.int64(2)), {"type": "slice", "value": [1, None, 2]}),
        (slice("a"), {"type": "slice", "value": [None, None, None]}),
        (np.float64(2), {"type": "float64", "value": 2.0}),
        (np.int32(2), {"type": "int32", "value": 2}),
        (None, None),
        (object(), None),
        ([1, (None,)], [{"type": "int", "value": 1}, [None]]),
        ({"a": {2: 3}}, {"a": {2: {"type": "int", "value": 3}}}),
        ({(1, 2): "x"}, {"(1, 2)": {"type": "str", "value": "x"}}),
        (Named(1, None), {"left": {"type": "int", "value": 1}, "right": None}),
        (Data([2]), {"inner": [{"type": "int", "value": 2}]}),
    ],
)
def test_plain_values(value: Any, shown: Any) -> None:
    assert DESCRIBER.describe(value) == shown


def test_values_of_pytorch() -> None:
    assert DESCRIBER.describe(torch.Size([1, 2])) == {"type": "torch.Size", "value": [1, 2]}
    shown = DESCRIBER.describe((torch.channels_last, torch.float32, torch.device("cpu")))
    assert shown == [{"type": "torch.memory_format", "format": "channels_last"}, {}, {}]
    shown = DESCRIBER.describe({"dtype": torch.float16, "device": torch.device("cpu")})
    assert shown["dtype"] == {"type": "torch.dtype", "value": "torch.float16"}
    assert shown["device"] == {"type": "torch.device", "value": "cpu:None"}
    shown = DESCRIBER.describe({"device": "cuda:1", "x": {"device": None}})
    assert shown == {"device": {"type": "torch.device", "value": "cuda:1"}, "x": {"device": None}}


def test_tensors_and_arrays_are_told_their_place() -> None:
    value = ({"x": [torch.ones(1), np.ones(1)]}, torch.ones(1))
    assert DESCRIBER.describe(value) == [{"x": [["tensor", 0, "x", 0], ["array", 0, "x", 1]]}, ["tensor", 1]]


def test_what_holds_itself_ends() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert DESCRIBER.describe(endless) is not None
