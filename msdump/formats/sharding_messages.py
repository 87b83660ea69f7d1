"""Messages between two ranks as layout.json has them: what arrives must be what was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """What one rank sends to another.

    group     name of the process group that carries it
    source, destination  ranks of the job
    number    how many messages of this group, tag and pair of ranks came before it in its iteration
    """

    group: str
    source: int
    destination: int
    tag: int
    number: int


@dataclass(frozen=True, slots=True)
class MessageOperand:
    """A tensor that is the content of a message: input of a send, output of a receive.

    iteration  from which on it is, until another one of the same operand comes
    misuse     what the program did to the buffer before it had waited for the message; "" nothing wrong
    """

    graph_id: int
    name: str
    io: str
    slot: int
    iteration: int
    message: Message
    misuse: str = ""


def message_row(operand: MessageOperand) -> dict[str, Any]:
    message = operand.message
    return {
        "graph": operand.graph_id,
        "name": operand.name,
        "io": operand.io,
        "slot": operand.slot,
        "iteration": operand.iteration,
        "group": message.group,
        "source": message.source,
        "destination": message.destination,
        "tag": message.tag,
        "number": message.number,
        "misuse": operand.misuse,
    }
