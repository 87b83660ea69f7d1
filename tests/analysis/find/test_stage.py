"""At which stage of a training step a bad value appeared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import find_non_finite
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
GOOD, BAD = floats(1, 2), floats(1, np.nan)


@pytest.mark.parametrize(
    ("scope", "stage"),
    [
        ("Default/network-WithLossCell/_backbone-Net", ""),
        ("Default/network-WithLossCell/_loss_fn-SoftmaxCrossEntropyWithLogits", "loss"),
        ("Default/net-Trainer/criterion-MSE", "loss"),
        ("Default/head-FocalLoss", "loss"),
        ("Default/loss_net-WithLossCell/backbone-Net", ""),
        ("Gradients/Default/network-WithLossCell/_loss_fn-MSELoss/gradSub-expand", ""),
    ],
)
def test_scopes_of_a_loss(tmp_path: Path, scope: str, stage: str) -> None:
    first = find_non_finite(write_dump(tmp_path, [(f"{scope}/Log-op1", {IN: GOOD, OUT: BAD})])).first_nan
    assert first is not None and first.how == "made" and first.stage == stage


def test_a_value_that_comes_in_between_two_graphs_of_an_iteration(tmp_path: Path) -> None:
    for iteration, gradient in ((0, GOOD), (1, BAD)):
        write_dump(tmp_path, [("Default/MatMul-op1", {IN: GOOD, OUT: GOOD})], iteration, graph=0)
        write_dump(tmp_path, [("Gradients/Default/MatMul-op2", {IN: gradient, OUT: gradient})], iteration, graph=1)
    first = find_non_finite(tmp_path).first_nan
    assert first is not None and first.how == "came in" and first.stage == "after output"
    assert first.after is not None and (first.after.graph_id, first.after.iteration) == (0, 1)


def test_a_graph_that_was_bad_before_is_no_witness(tmp_path: Path) -> None:
    write_dump(tmp_path, [("Default/Log-op1", {IN: GOOD, OUT: BAD})], graph=0)
    write_dump(tmp_path, [("Gradients/Default/MatMul-op2", {IN: BAD, OUT: BAD})], graph=1)
    first, second = find_non_finite(tmp_path).nan
    assert (first.how, second.how) == ("made", "came in")
    assert second.stage == "" and second.after is None
