"""Which engine sees the operators of a program: the dispatch mode where a rule says so, else `msdump_native`.

The table of docs/torch-eager.md is made of these rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msdump.config.plan import SYNC

if TYPE_CHECKING:
    from msdump.config.plan import Plan


class Situation(NamedTuple):
    """What the rules look at.

    runs_compiled   whether the program has run what `torch.compile` made
    is_distributed  whether `torch.distributed` is in use
    """

    plan: Plan
    runs_compiled: bool
    is_distributed: bool

    @property
    def keeps(self) -> bool:
        """Whether tensors are copied, and not only measured."""
        return not self.plan.measures_only


class Rule(NamedTuple):
    """A reason to leave a program to the dispatch mode.

    condition  in words, for the page
    reason     what the report says of it
    """

    condition: str
    reason: str
    holds: Callable[[Situation], bool]


RULES = (
    Rule(
        "tensors are dumped, and `op_debug_mode` or an exception trigger looks at them",
        "the dump looks for overflows, or for who overwrites an output",
        lambda now: now.keeps and bool(now.plan.trigger.op_debug_mode or now.plan.trigger.is_watcher),
    ),
    Rule(
        "tensors of some operators are dumped",
        "it would copy the tensors of all operators, and the configuration selects some",
        lambda now: now.keeps and (now.plan.which.selectors is not None or now.plan.which.takes_marked),
    ),
    Rule(
        "tensors or MD5 are dumped by the asynchronous engine",
        "the dump is asynchronous, and saves more than statistics without MD5",
        lambda now: now.keeps and now.plan.how.engine != SYNC,
    ),
    Rule("a flight recorder runs", "a flight recorder keeps the tensors", lambda now: now.plan.recorder is not None),
    Rule(
        "the dump begins when an operator raises",
        "the dump waits for an operator that raises",
        lambda now: bool(now.plan.trigger.exception),
    ),
    Rule(
        "the program has run what `torch.compile` made",
        "the program runs what torch.compile has made",
        lambda now: now.runs_compiled,
    ),
    Rule("`torch.distributed` is in use", "torch.distributed is in use", lambda now: now.is_distributed),
)


def why_mode(now: Situation) -> str:
    """Why the dispatch mode sees the operators, in words; "" where no rule says so."""
    return next((rule.reason for rule in RULES if rule.holds(now)), "")


def table() -> str:
    """The rules as the page shows them. Devices have reasons of their own."""
    lines = ["| condition | engine | what the report says |", "|---|---|---|"]
    of_devices = (
        ("tensors are dumped, and a parameter is not on the CPU", "it copies no tensors of other devices than the CPU"),
        ("a parameter is on a device that is neither the CPU nor CUDA", "it does not measure tensors on that device"),
    )
    for condition, reason in (*((rule.condition, rule.reason) for rule in RULES), *of_devices):
        lines.append(f"| {condition} | dispatch mode | {reason} |")
    return "\n".join([*lines, "| none of these | compiled observer | how many iterations it saw |"])
