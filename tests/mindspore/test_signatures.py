"""Calls that MindSpore 2.0 and 2.7 both allow are calls here: names, places and defaults of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import numpy as mnp
from msdump.mindspore import ops
from msdump.mindspore.ops.methods import other_names
from tests.mindspore_signatures import TABLE, Shown, lacking, lines, namespace_of, read

_ROOT = "msdump.mindspore"
# The default is spelled in another way that means the same -> names.
_SAME_DEFAULT = {
    "None is float32": "mindspore.ops:eye",
    "None is 0": "Tensor:nan_to_num",
    "the text is the dtype's name": "mindspore.dataset.text:Lookup",
}
# What takes other arguments, and why that stops no script -> names.
_OTHERWISE = {
    "a pipeline makes it": """
        mindspore.dataset:DictIterator mindspore.dataset:MapDataset mindspore.dataset:TupleIterator
    """,
    "scripts derive from Sampler": "mindspore.dataset:BuiltinSampler",
    "a decorator, whose only argument has no name in a script": "mindspore.dataset.transforms:not_random",
}


def _exceptions() -> set[str]:
    return set(" ".join([*_SAME_DEFAULT.values(), *_OTHERWISE.values()]).split())


@pytest.fixture(scope="module")
def own() -> dict[str, list[Shown]]:
    """Parameters of what msdump has, by module and name."""
    return read(_ROOT)


def _differences(own: dict[str, list[Shown]]) -> dict[str, list[str]]:
    found = {}
    for key, line in lines(TABLE.read_text(encoding="utf-8")):
        if key in own:
            path, name = key.split(":")
            listed = list(lacking(line, own[key], other_names(getattr(namespace_of(_ROOT, path), name))))
            if listed:
                found[key] = listed
    return found


def test_what_both_versions_take_is_taken_here(own: dict[str, list[Shown]]) -> None:
    differences = _differences(own)
    assert {key: listed for key, listed in differences.items() if key not in _exceptions()} == {}
    assert _exceptions() <= set(differences), "a listed exception is none any more"


_ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)
_X = ms.Tensor(_ARRAY)
_PLACES = np.array([[0], [2]])
# A call of a way that one version or both have, and what it gives.
_CALLS = {
    "x.sum(1, True)": _ARRAY.sum(1, keepdims=True),
    "x.sum(dim=1, keepdim=True)": _ARRAY.sum(1, keepdims=True),
    "x.mean(dim=1, keepdim=True)": _ARRAY.mean(1, keepdims=True),
    "x.max(where=True)": _ARRAY.max(),
    "x.cumsum()": _ARRAY.cumsum(),
    "x.cumsum(dim=1)": _ARRAY.cumsum(1),
    "x.flatten('F')": _ARRAY.flatten("F"),
    "x.flatten(0, 1)": _ARRAY.reshape(-1),
    "x.flatten(1)": _ARRAY,
    "x.select(1, -1)": _ARRAY[:, -1],
    "x.gather(1, places)": np.take_along_axis(_ARRAY, _PLACES, 1),
    "x.gather(dim=1, index=places)": np.take_along_axis(_ARRAY, _PLACES, 1),
    "x.swapaxes(axis0=0, axis1=1)": _ARRAY.T,
    "x[:, 0].addmv(x, x[0], 2, 3)": 2 * _ARRAY[:, 0] + 3 * (_ARRAY @ _ARRAY[0]),
    "ops.subtract(x, x, alpha=3)": -2 * _ARRAY,
    "ops.floormod(x=x, y=4)": _ARRAY % 4,
    "ops.Unstack(axis=0, num=2)(x)[1]": _ARRAY[1],
    "ops.DynamicShape(dtype=9)(x)": np.array([2, 3]),
    "ops.Adam(use_nesterov=True).attrs['use_nesterov']": np.array(True),
    "ops.LpNorm(axis=1, p=1, epsilon=5.0)(x)": np.array([5.0, 12.0]),
    "ops.unique(places)[1]": np.array([[0], [1]]),
    "mnp.mean(i)": np.array(3),
    "mnp.argmin(x)": np.array(0),
    "mnp.float_power(x, 2)": _ARRAY**2,
    "mnp.copy(x > 2)": _ARRAY > 2,
    "mnp.nansum(i)": np.array(21),
    "mnp.trunc(i)": _ARRAY + 1,
    "mnp.hstack(x)": _ARRAY,
    "ops.clip_by_global_norm(x[0], 1.0)": _ARRAY[0] / np.sqrt(np.float32(5)),
    "mnp.in1d(x, ar2=[1.0, 4.0])": np.isin(_ARRAY, [1, 4]).reshape(-1),
    "mnp.negative(a=x)": -_ARRAY,
    "ms.jit(function=lambda y: y + 1)(x)": _ARRAY + 1,
    "len([*ms.nn.SequentialCell(ms.nn.ReLU()).cells_and_names(None, 'a')])": np.array(2),
}


@pytest.mark.parametrize("text", _CALLS)
def test_a_call_computes_what_the_parameters_say(text: str) -> None:
    scope = {
        "x": _X,
        "i": ms.Tensor(_ARRAY.astype(np.int32) + 1),
        "places": ms.Tensor(_PLACES),
        "ms": ms,
        "ops": ops,
        "mnp": mnp,
    }
    result = eval(text, scope)
    array = result.asnumpy() if isinstance(result, ms.Tensor) else np.asarray(result)
    assert (array.shape, array.dtype.kind) == (_CALLS[text].shape, _CALLS[text].dtype.kind)
    np.testing.assert_allclose(array, _CALLS[text], rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("ops.Unstack(num=3)(x)", ValueError, "'num' must be 2"),
        ("ops.MaxPool3D(data_format='NDHWC')(x)", ValueError, "'data_format' must be 'NCDHW'"),
        ("x.flatten('K')", ValueError, "'order' must be 'C' or 'F'"),
        ("ops.Conv2D(1, 1, mode=0)", ValueError, "'mode' must be 1"),
        ("ops.Conv3D(1, 1, mode=0)(x[None, None, None], x[None, None, None])", ValueError, "'mode' must be 1"),
        ("ops.Adam(nesterov=True)", TypeError, "unexpected keyword argument 'nesterov'"),
    ],
)
def test_an_argument_that_means_nothing_is_refused(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eval(text, {"x": _X, "ops": ops})


def test_a_line_says_what_is_lacking() -> None:
    own = [Shown("a", 1, None), Shown("b", 1, "2"), Shown("c", 1, None)]
    assert [*lacking("x/a b=1 * d", own, {"x": "a"})] == ["b is 2, not 1", "takes no d", "c must be given"]
    assert [*lacking("b=? a", own, {})] == ["b is not at place 0", "a is not at place 1", "c must be given"]
