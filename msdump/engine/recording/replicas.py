"""Replicas: what the ranks of a group must hold in equal bytes, compared by fingerprints while the job runs.

Each rank writes `{path}/.msdump/replicas_rank_N.json` at the end of a step, and reads the file of the next rank of each
group. Steps are those in which the group worked together, and are counted by that: a rank may run others alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from msdump.engine.recording.incidents import CONTROL
from msdump.errors import FormatError
from msdump.formats.atomic import make_dirs, write_file
from msdump.storage.plain import read_plain, unreadable
from msdump.tensors.arrays import Array

# Bytes of a fingerprint, and those of it that a file tells of a single tensor.
_DIGEST_BYTES = 8
_PART_BYTES = 2
_LANES = 1024
_STEPS = 4
_MODE = 0o600
_MAX_BYTES = 16 << 20
_MAX_NAMES = 3


def fingerprint(array: Array) -> bytes:
    """Eight bytes that differ where an element differs, at the speed of memory.

    Edges: a single changed bit always changes it, as do two elements of eight bytes that change their places. Bytes
           count: -0.0 is not 0.0, and NaNs of other payloads differ.
    """
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.blake2b(data.size.to_bytes(8, "little"), digest_size=_DIGEST_BYTES)
    whole = data.size // (8 * _LANES)
    if whole:
        lanes = data[: whole * 8 * _LANES].view(np.uint64).reshape(whole, _LANES)
        digest.update(np.add.reduce(lanes, axis=1, dtype=np.uint64).tobytes())
        digest.update(np.bitwise_xor.reduce(lanes, axis=0).tobytes())
    digest.update(data[whole * 8 * _LANES :].tobytes())
    return digest.digest()


@dataclass(slots=True)
class _Noted:
    """Tensors of one group in the step that runs.   shared: how many there were when the group last worked together"""

    names: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    shared: int = 0


@dataclass(frozen=True, slots=True)
class GroupStep:
    """What a rank held in a step that its group ran together.

    sequence  number of such a step of this group, from 0
    names     digest of the names of the tensors: ranks that differ in it ran other programs
    digest    of all tensors
    parts     the beginning of the fingerprint of each tensor, in their order
    """

    ranks: tuple[int, ...]
    sequence: int
    names: str
    digest: str
    parts: str


class Replicas:
    """The tensors of this rank that others hold, too. Calls come from one thread at a time.

    path   folder of the dump, shared by all ranks
    """

    def __init__(self, path: Path, rank: int) -> None:
        self._folder = path / CONTROL
        self._rank = rank
        self._noted: dict[tuple[int, ...], _Noted] = {}
        self._steps: dict[tuple[int, ...], deque[tuple[GroupStep, list[str]]]] = {}
        self._checked: dict[tuple[int, ...], int] = {}
        self._unequal: set[tuple[int, ...]] = set()
        # What an earlier process has left would be compared with this one.
        self._remove()

    def note(self, ranks: tuple[int, ...], name: str, array: Array, is_shared: bool) -> None:
        """A tensor of the step that runs.   ranks: that must hold its bytes; is_shared: the group has just made it"""
        noted = self._noted.setdefault(ranks, _Noted())
        noted.names.append(name)
        noted.digests.append(fingerprint(array))
        if is_shared:
            noted.shared = len(noted.names)

    def end_step(self) -> str:
        """The step has ended: publish its digests, and compare those that other ranks have published.

        Returns: what differs; "" where nothing does, or it did before.
        Raises:  WriteError; FormatError for what another rank has written.
        """
        shared = {ranks: noted for ranks, noted in self._noted.items() if noted.shared}
        self._noted.clear()
        for ranks, noted in shared.items():
            # What comes behind that a rank may run alone, such as an evaluation.
            self._close(ranks, noted.names[: noted.shared], noted.digests[: noted.shared])
        if shared:
            self._write()
        texts = [self._compare(ranks) for ranks in self._steps]
        return "; ".join(filter(None, texts))

    def close(self) -> None:
        self._remove()

    # -- parts ------------------------------------------------------------------------------------

    def _close(self, ranks: tuple[int, ...], tensors: list[str], digests: list[bytes]) -> None:
        steps = self._steps.setdefault(ranks, deque(maxlen=_STEPS))
        sequence = steps[-1][0].sequence + 1 if steps else 0
        names, whole = (hashlib.blake2b(digest_size=_DIGEST_BYTES) for _ in range(2))
        for name, digest in zip(tensors, digests, strict=True):
            names.update(name.encode(errors="surrogatepass") + b"\0")
            whole.update(digest)
        parts = b"".join(digest[:_PART_BYTES] for digest in digests).hex()
        step = GroupStep(ranks, sequence, names.hexdigest(), whole.hexdigest(), parts)
        steps.append((step, tensors))

    def _compare(self, ranks: tuple[int, ...]) -> str:
        """Look at the next rank of the group alone: where all are equal to their next one, all are equal."""
        other_rank = ranks[(ranks.index(self._rank) + 1) % len(ranks)]
        theirs = {step.sequence: step for step in _read(self._file(other_rank)) if step.ranks == ranks}
        text = ""
        for step, names in self._steps[ranks]:
            found = theirs.get(step.sequence)
            if found is None or step.sequence <= self._checked.get(ranks, -1):
                continue
            self._checked[ranks] = step.sequence
            if found.names != step.names:
                continue
            if found.digest == step.digest:
                self._unequal.discard(ranks)
            elif ranks not in self._unequal:
                self._unequal.add(ranks)
                text = self._say(step, names, found, other_rank)
        return text

    def _say(self, own: GroupStep, names: Sequence[str], found: GroupStep, other_rank: int) -> str:
        width = 2 * _PART_BYTES
        unequal = [
            name
            for index, name in enumerate(names)
            if own.parts[index * width : (index + 1) * width] != found.parts[index * width : (index + 1) * width]
        ]
        listed = ", ".join(unequal[:_MAX_NAMES]) or "a tensor"
        more = f" and {len(unequal) - _MAX_NAMES} more" if len(unequal) > _MAX_NAMES else ""
        suspects = self._suspects(own)
        who = f"; {_listed(suspects)} differ from most" if suspects else ""
        return f"ranks {self._rank} and {other_rank} hold different bytes of {listed}{more}{who}"

    def _suspects(self, own: GroupStep) -> list[int]:
        """Ranks that are in the minority; none where there is no majority, or not all can be read."""
        digests = {self._rank: own.digest}
        for rank in own.ranks:
            with contextlib.suppress(FormatError):
                for step in _read(self._file(rank)):
                    if (step.ranks, step.sequence, step.names) == (own.ranks, own.sequence, own.names):
                        digests[rank] = step.digest
        ((most, count),) = Counter(digests.values()).most_common(1)
        return [rank for rank in sorted(digests) if digests[rank] != most] if 2 * count > len(own.ranks) else []

    def _write(self) -> None:
        steps = [
            {
                "ranks": step.ranks,
                "sequence": step.sequence,
                "names": step.names,
                "digest": step.digest,
                "parts": step.parts,
            }
            for group in self._steps.values()
            for step, _ in group
        ]
        make_dirs(self._folder)
        write_file(self._file(self._rank), [json.dumps(steps).encode()], _MODE, replace=True)

    def _file(self, rank: int) -> Path:
        return self._folder / f"replicas_rank_{rank}.json"

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._file(self._rank).unlink()


def _read(path: Path) -> list[GroupStep]:
    """What another rank has published; empty where it has published nothing yet.   Raises: FormatError."""
    try:
        content = json.loads(read_plain(path, _MAX_BYTES))
    except FileNotFoundError:
        return []
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected JSON, got something else: {error}.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not isinstance(content, list):
        raise FormatError(f"{path}: expected a list of steps, got {str(content)[:80]}.")
    return [_step(path, row) for row in content]


def _step(path: Path, row: Any) -> GroupStep:
    ranks, sequence = (row.get("ranks"), row.get("sequence")) if isinstance(row, dict) else (None, None)
    texts = [row.get(key) for key in ("names", "digest", "parts")] if isinstance(row, dict) else []
    is_whole = isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks)
    if not is_whole or not isinstance(sequence, int) or not all(isinstance(text, str) for text in texts):
        raise FormatError(f"{path}: expected what a rank held in a step, got {str(row)[:80]}.")
    return GroupStep(tuple(ranks or ()), sequence, *map(str, texts))


def _listed(ranks: Sequence[int]) -> str:
    return f"ranks {', '.join(map(str, ranks))}"
