"""A session of the process with observers of a test's own."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.dumpers.tally import Tally
from msdump.engine import opening
from msdump.engine.graphs import GraphSession
from msdump.graph.run import Observer
from msdump.process import sessions
from tests.plans import plain_plan


def open_session(observers: Sequence[Observer]) -> None:
    """What the process compiles from now on is watched by these; without any, no dump is configured."""
    sessions.reset_for_tests()
    opening._graphs[-1].is_decided = True
    if observers:
        session = GraphSession(plain_plan(device_target="CPU"), tuple(observers), (), Tally())
        opening._graphs[-1].session = sessions.begin(session)
