"""Messages of eager programs: which buffers they still occupy."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.formats.sharding_json import Message, MessageOperand  # noqa: E402
from msdump.frontends.torch.eager.messages import Messages, Transfer  # noqa: E402
from msdump.frontends.torch.eager.operands import CallOperands  # noqa: E402
from msdump.frontends.torch.eager.signatures import Tensor, signature_of  # noqa: E402
from msdump.frontends.torch.eager.stage import FORWARD, Call, Named, Stage  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no distributed package")
ADD = signature_of(torch.ops.aten.add_.Tensor)
VIEW = signature_of(torch.ops.aten.view.default)


class Book:
    """Messages of a job."""

    is_on = True

    def __init__(self) -> None:
        self.operands: list[MessageOperand] = []

    def note_message(self, operand: MessageOperand) -> None:
        self.operands.append(operand)


class Shown(Stage):
    """A stage without observers that lists what it is to show."""

    def __init__(self) -> None:
        super().__init__(FORWARD, 0, ())
        self.calls: list[Call] = []

    def show(self, call: Call) -> None:
        self.calls.append(call)


class Player:
    """A program that sends and receives.   is_over: whether it has waited"""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_over = False
        monkeypatch.setattr(Transfer, "is_over", property(lambda transfer: self.is_over))
        self.skipped: list[str] = []
        self.operands = CallOperands(lambda reason, name="": None, keeps=False)
        self.book: Any = Book()
        self.stage = Shown()
        self.messages = Messages(self.operands, self.book, self.skipped.append)

    def note(self, function: Any, tensor: Any, name: str) -> None:
        signature = signature_of(function)
        tensors = [Tensor("tensors[0]", tensor, signature.is_receive)]
        inputs = (self.operands.info(tensor, (name, "tensors[0]")),)
        call = Call(signature, "Default", Named(0, name), tensors, dict, inputs)
        call.copies = self.operands.copies(call, tensors)
        self.messages.note(Transfer(self.stage, call, Message("0", 0, 1, 0, 0), None))

    def misuses(self) -> list[tuple[str, str]]:
        return [(operand.name, operand.misuse) for operand in self.book.operands]


def test_what_has_arrived_is_shown_before_the_first_operator_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    player = Player(monkeypatch)
    buffer, other = torch.zeros(4), torch.zeros(4)
    player.note(torch.ops.c10d.recv_.default, buffer, "recv")
    buffer.fill_(7)
    player.is_over = True
    player.messages.settle(ADD, [Tensor("self", other, True)], "elsewhere")
    player.messages.settle(VIEW, [Tensor("self", buffer, False)], "view")
    assert not player.stage.calls and player.messages.are_pending
    player.messages.settle(ADD, [Tensor("self", other, True), Tensor("other", buffer[1:], False)], "add")
    (call,) = player.stage.calls
    assert [array.tolist() for array in (*call.read, *call.written)] == [[0.0] * 4, [7.0] * 4]
    assert player.misuses() == [("recv", "")] and not player.messages.are_pending


def test_buffers_that_are_used_too_early_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    player = Player(monkeypatch)
    sent, received = torch.ones(4), torch.zeros(4)
    player.note(torch.ops.c10d.send.default, sent, "send")
    player.note(torch.ops.c10d.recv_.default, received, "recv")
    player.messages.settle(ADD, [Tensor("self", sent, True), Tensor("other", received, False)], "add")
    assert player.misuses() == [
        ("send", ""),
        ("send", "overwritten by add before the message was waited for"),
        ("recv", "used by add before the message was waited for"),
    ]


@pytest.mark.parametrize("is_over", [True, False])
def test_a_stage_ends_with_what_has_arrived(is_over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    player = Player(monkeypatch)
    player.note(torch.ops.c10d.recv_.default, torch.zeros(4), "recv")
    player.is_over = is_over
    player.messages.finish(player.stage)
    assert len(player.stage.calls) == is_over and len(player.skipped) == (not is_over)
    assert not player.messages.are_pending
