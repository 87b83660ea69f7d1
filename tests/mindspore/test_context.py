"""set_context and get_context: values, and MindSpore's error texts."""

from __future__ import annotations

from typing import Any

import pytest

import msdump.mindspore as ms
from msdump.errors import ConfigError, KernelNotFoundError
from msdump.graph import primitive
from msdump.mindspore import communication

S = "For 'context.set_context', "
GUIDE = "For detailed usage of 'set_context', please refer to the Mindspore official website."
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"nope": 1}, ValueError, f"{S}the keyword argument nope is not recognized! {GUIDE}"),
    (
        {"mode": 5},
        ValueError,
        f"{S}the argument 'mode' should be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got 5.",
    ),
    (
        {"device_target": "TPU"},
        ValueError,
        f"{S}the argument 'device_target' must be one of ['CPU', 'GPU', 'Ascend', 'Davinci'], but got TPU.",
    ),
    ({"device_id": -1}, ValueError, f"{S}the argument 'device_id' must be in range [0, 4095], but got -1."),
    ({"device_id": 4096}, ValueError, f"{S}the argument 'device_id' must be in range [0, 4095], but got 4096."),
    ({"device_id": "0"}, TypeError, "The parameter 'device_id' must be <class 'int'>, but got <class 'str'>"),
    (
        {"reserve_class_name_in_scope": 1},
        TypeError,
        "The parameter 'reserve_class_name_in_scope' must be <class 'bool'>, but got <class 'int'>",
    ),
    (
        {"save_graphs_path": 3},
        TypeError,
        "The parameter 'save_graphs_path' must be <class 'str'>, but got <class 'int'>",
    ),
    ({"save_graphs": 7}, ValueError, "value for save_graphs should be 0-3 but got '7'"),
    ({"deterministic": "x"}, ValueError, f"{S}the argument 'deterministic' must be one of ['ON', 'OFF'], but got x."),
    (
        {"jit_config": {"jit_level": "O9"}},
        ValueError,
        "For 'jit_config', the value of argument jit_level must be one of ['O0', 'O1', 'O2'], but got O9.",
    ),
]


@pytest.mark.parametrize(("settings", "kind", "text"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_settings_are_refused_and_change_nothing(
    settings: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        ms.set_context(**{"mode": 0, **settings})
    assert str(caught.value).startswith(text)
    assert type(caught.value) is kind
    assert ms.get_context("mode") == ms.PYNATIVE_MODE


def test_unknown_key_of_get_context_offers_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"^For 'context\.get_context', the argument device_ids is not recognized! "):
        ms.get_context("device_ids")
    with pytest.raises(ValueError, match='Did you mean "device_id"'):
        ms.get_context("device_ids")


def test_settings_are_kept() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Davinci", save_graphs=True, max_call_depth=10)
    assert ms.get_context("device_target") == "Ascend"
    assert ms.get_context("save_graphs") == 2
    assert (ms.get_context("mode"), ms.get_context("max_call_depth")) == (0, 10)
    ms.set_device("GPU", 3)
    assert (ms.get_context("device_target"), ms.get_context("device_id")) == ("GPU", 3)
    ms.set_device("CPU")
    assert ms.get_context("device_id") == 3


def test_pynative_is_the_default() -> None:
    assert ms.get_context("mode") == ms.PYNATIVE_MODE == 1
    assert ms.get_context("reserve_class_name_in_scope") is True


def test_seed_is_checked() -> None:
    with pytest.raises(TypeError, match="must be type of int"):
        ms.set_seed("1")
    with pytest.raises(ValueError, match="greater or equal to 0"):
        ms.set_seed(-1)


def test_rank_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (communication.get_rank(), communication.get_group_size()) == (0, 1)
    monkeypatch.setenv("RANK_ID", "3")
    monkeypatch.setenv("RANK_SIZE", "8")
    assert (communication.get_rank(), communication.get_group_size()) == (3, 8)
    monkeypatch.setenv("RANK_ID", "three")
    with pytest.raises(ConfigError, match='RANK_ID: expected a number, got "three"'):
        communication.get_rank()


def test_the_library_that_computes_is_chosen() -> None:
    pytest.importorskip("torch")
    product, inverse = primitive.definition_of("MatMul"), primitive.definition_of("Erfinv")
    try:
        ms.set_context(kernel_backend="torch")
        assert product.kernel("here") is product.kernels["torch"]
        ms.set_context(kernel_backend="auto")
        assert product.kernel("here") is product.kernels["numpy"]
        assert inverse.kernel("here") is inverse.kernels["torch"]
        ms.set_context(kernel_backend="numpy")
        with pytest.raises(KernelNotFoundError, match=r"^here: Erfinv has no kernel of numpy\.$"):
            inverse.kernel("here")
    finally:
        ms.set_context(kernel_backend="auto")
    with pytest.raises(ValueError, match="kernel_backend"):
        ms.set_context(kernel_backend="jax")
