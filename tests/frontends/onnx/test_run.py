"""ONNX models keep the contract of watched runs, with memory of their own and in an arena."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import helper

from msdump.frontends.onnx import load_model
from msdump.graph.run import Observer
from tests.contracts.run_contract import Play, RunContract
from tests.frontends.onnx.models import model_of, value


class OnnxContract(RunContract):
    has_arena: bool

    def program(self, observers: Sequence[Observer]) -> Play:
        nodes = [
            helper.make_node("Exp", ["x"], ["y"], "exp"),
            helper.make_node("Neg", ["y"], ["n"], "neg"),
            helper.make_node("Mul", ["y", "n"], ["z"], "mul"),
        ]
        model = load_model(
            model_of(nodes, [value("x", shape=(2, 3))], [value("z", shape=(2, 3)), value("y", shape=(2, 3))]),
            observers,
            has_arena=self.has_arena,
        )
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        return lambda: b"".join(array.tobytes() for array in model(x))

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        nodes = [
            helper.make_node("Neg", ["table"], ["n"], "neg"),
            helper.make_node("Gather", ["n", "index"], ["p"], "pick"),
            helper.make_node("Exp", ["p"], ["z"], "exp"),
        ]
        inputs = [value("table", shape=(3,)), value("index", np.int64, (1,))]
        model = load_model(model_of(nodes, inputs, [value("z", shape=(1,))]), observers, has_arena=self.has_arena)
        return lambda: model(np.ones(3, np.float32), np.array([7]))[0].tobytes()


class TestOwnMemory(OnnxContract):
    has_arena = False


class TestArena(OnnxContract):
    has_arena = True
