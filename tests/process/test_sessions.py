"""The list of sessions, and the contract of the session of each front end."""

from __future__ import annotations

import pytest

from tests.contracts.session_contract import SessionContract


class TestMindSpore(SessionContract):
    player, files, in_one_step = "mindspore", "*.npy", 3

    @pytest.fixture(autouse=True)
    def needs(self, needs_mindspore: None) -> None: ...


class TestTorch(SessionContract):
    player, files, in_one_step, has_threads = "torch_backend", "*.npy", 3, False

    @pytest.fixture(autouse=True)
    def needs(self) -> None:
        pytest.importorskip("torch")._dynamo.reset()


class TestAcl(SessionContract):
    player, files, in_one_step = "acl", "*", 3

    @pytest.fixture(autouse=True)
    def needs(self) -> None:
        pytest.importorskip("onnxruntime")
        from msdump.frontends.acl.process import process

        process.reset_for_tests()


class TestGeGraph(TestTorch):
    player, files, in_one_step, has_threads = "ge_graph", "*", 3, True


class TestEager(TestTorch):
    player, files, in_one_step = "eager", "*.npy", 5


class TestMsprobe(TestTorch):
    # dump.json, and the operand and the result of an operator, which are equal.
    player, files, in_one_step, writes_first = "msprobe", "*", 3, True


class TestCaptured(TestTorch):
    player, files, in_one_step = "captured", "*.pt", 3
    can_choose = counts_steps = False
