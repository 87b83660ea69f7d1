"""Run an operator on every worker: a machine whose bits differ from the others of its kind is faulty.

Source: the rerun of Megatron-LM and the replay of ByteRobust, which find silent data corruption by comparing machines.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from msdump.analysis.ranks.work import PROCESSES, on_each_worker
from msdump.analysis.replay.replay import replay_operator
from msdump.errors import MsdumpError


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one worker computed.   hashes: SHA-256 of the outputs of each run; problem: why there are none"""

    host: str
    process: int
    hashes: Mapping[str, str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Vote:
    """What all workers computed.

    winners    run -> hash that more workers computed than any other; not there where two are equal in number
    outvoted   (ballot, run) of each worker that computed something else
    """

    ballots: tuple[Ballot, ...]
    winners: Mapping[str, str]
    outvoted: tuple[tuple[Ballot, str], ...]

    @property
    def is_tied(self) -> bool:
        """Whether workers disagree and no majority tells who is wrong."""
        hashes: dict[str, set[str]] = {}
        for ballot in self.ballots:
            for run, digest in ballot.hashes.items():
                hashes.setdefault(run, set()).add(digest)
        return any(len(found) > 1 and run not in self.winners for run, found in hashes.items())


def replay_everywhere(
    dump: str | os.PathLike[str], name: str, *, engine: str = PROCESSES, jobs: int | None = None, **selected: Any
) -> Vote:
    """Replay an operator on every worker of an engine and compare the bits.

    dump      a folder that every worker finds at that path
    jobs      workers of this machine; with Dask each worker of the cluster has one vote
    selected  rank, graph, iteration and model as of `replay_operator`
    Edges:    machines of different kinds may round differently: let those of one kind vote.
    """
    ballots = on_each_worker(partial(_ballot, os.path.abspath(dump), name, selected), engine, jobs)
    return count(ballots)


def _ballot(dump: str, name: str, selected: Mapping[str, Any]) -> Ballot:
    try:
        result = replay_operator(dump, name, **selected)
    except MsdumpError as error:
        return Ballot(socket.gethostname(), os.getpid(), {}, str(error))
    hashes = {run: _digest(one.outputs) for run, one in result.runs.items() if not one.problem}
    return Ballot(socket.gethostname(), os.getpid(), hashes)


def _digest(outputs: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for output in outputs:
        array = np.ascontiguousarray(output)
        digest.update(repr((array.dtype.name, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def count(ballots: Sequence[Ballot]) -> Vote:
    """The majority of each run, and who is outvoted."""
    winners: dict[str, str] = {}
    outvoted = []
    for run in dict.fromkeys(run for ballot in ballots for run in ballot.hashes):
        votes = Counter(ballot.hashes[run] for ballot in ballots if run in ballot.hashes).most_common(2)
        if len(votes) == 1 or votes[0][1] > votes[1][1]:
            winners[run] = votes[0][0]
            outvoted += [(ballot, run) for ballot in ballots if ballot.hashes.get(run, winners[run]) != winners[run]]
    return Vote(tuple(ballots), winners, tuple(outvoted))
