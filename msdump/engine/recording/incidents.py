"""Incidents: what all ranks of a job keep, agreed on by files in a folder that they share.

`{path}/.msdump/incident_0001.json` says which steps are kept, and why. The files are numbered, each is made once and is
whole from the beginning: whichever rank makes the next one has decided for all. A rank looks for the next file once in
a step. `{path}/.msdump/trigger.json` asks for the steps without knowing their numbers: a rank that sees it takes it
away and makes an incident of it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from msdump.errors import FormatError, WriteError
from msdump.formats.atomic import make_dirs, remove_leftovers, scratch_folder, write_file
from msdump.storage.plain import read_plain

log = logging.getLogger("msdump")

CONTROL = ".msdump"
REQUEST = "trigger.json"
# Those after which a process is not expected to run a further step.
TERMINAL = ("exception", "hang", "signal", "killed")
_INCIDENT = re.compile(r"incident_([0-9]{4,9})\.json")
_MODE = 0o600
_MAX_BYTES = 1 << 16
_MAX_STEPS = 1 << 20
_MAX_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Incident:
    """Steps that all ranks keep.

    why    name of the trigger; `text` says more
    rank   that declared it, -1 without a declaring rank; step: the one that rank ran
    first, last  steps that are kept, both included
    time   seconds since 1970
    """

    why: str
    text: str
    rank: int
    step: int
    first: int
    last: int
    time: float = 0.0
    number: int = 0

    @property
    def name(self) -> str:
        """Of the folder that the steps are kept in."""
        return incident_name(self.number)

    def keeps(self, step: int) -> bool:
        return self.first <= step <= self.last


@dataclass(frozen=True, slots=True)
class TriggerRequest:
    """What `trigger.json` asks for.   offset: steps from the one that runs, from which on they are kept."""

    why: str
    offset: int = 0


def incident_name(number: int) -> str:
    return f"incident_{number:04d}"


class IncidentLog:
    """The incidents below one folder, in the order of their numbers.

    base   number of the last one that is not news: those of earlier jobs
    """

    def __init__(self, path: Path, base: int | None = None) -> None:
        self.folder = path / CONTROL
        self.base = last_number(self.folder) if base is None else base
        self.seen: list[Incident] = []
        self._next = self.base + 1

    def poll(self) -> list[Incident]:
        """Those that have come since the last call."""
        news: list[Incident] = []
        while (incident := self._read(self._next)) is not None:
            news.append(incident)
            self._next += 1
        self.seen += news
        return news

    def declare(self, wish: Incident, joins: Callable[[Incident], bool]) -> Incident:
        """Make the next incident, or join one that another rank makes meanwhile.

        joins    whether one of another rank will do
        Returns: the incident that holds; it is in `seen`.
        Raises:  WriteError.
        """
        make_dirs(self.folder)
        while True:
            for news in self.poll():
                if joins(news):
                    return news
            own = replace(wish, number=self._next, time=wish.time or time.time(), text=wish.text[:_MAX_TEXT])
            file = self.folder / f"{own.name}.json"
            try:
                write_file(file, [(json.dumps(asdict(own), indent=1) + "\n").encode()], _MODE)
            except WriteError:
                if not os.path.lexists(file):
                    raise
            else:
                self._next += 1
                self.seen.append(own)
                return own

    def take_request(self) -> TriggerRequest | None:
        """Consume `trigger.json` and return its request; exactly one rank succeeds."""
        file = self.folder / REQUEST
        try:
            os.stat(file)
            with scratch_folder(self.folder) as scratch:
                os.rename(file, scratch / REQUEST)
                return _request_of(scratch / REQUEST)
        except (OSError, WriteError):
            return None

    def _read(self, number: int) -> Incident | None:
        file = self.folder / f"{incident_name(number)}.json"
        try:
            os.stat(file)
        except OSError:
            return None
        try:
            return incident_of(file)
        except (FormatError, OSError) as error:
            log.warning("%s", error)
            return Incident("unreadable", str(error), -1, -1, 0, -1, number=number)


def request(path: Path, why: str, offset: int = 0) -> Path:
    """Ask the job that records to this folder to keep its steps.   Returns: the file.   Raises: WriteError."""
    make_dirs(path / CONTROL)
    file = path / CONTROL / REQUEST
    content = json.dumps({"why": why[:_MAX_TEXT], "step": offset}) + "\n"
    write_file(file, [content.encode()], _MODE, replace=True)
    return file


def incidents_below(path: Path) -> Sequence[Incident]:
    """All that can be read, by number.   Raises: FormatError for one that cannot."""
    return [incident_of(path / CONTROL / f"{incident_name(number)}.json") for number in _numbers(path / CONTROL)]


def remove_leftovers_below(path: Path) -> None:
    """What killed processes were about to keep."""
    remove_leftovers(path / CONTROL)
    for number in _numbers(path / CONTROL):
        remove_leftovers(path / incident_name(number))


def last_number(folder: Path) -> int:
    return max(_numbers(folder), default=0)


def _numbers(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    matches = (_INCIDENT.fullmatch(name) for name in names)
    return sorted(int(match[1]) for match in matches if match is not None)


def incident_of(file: Path) -> Incident:
    """Raises: FormatError; OSError."""
    match = _INCIDENT.fullmatch(file.name)
    content = read_json(file)
    numbers = [content.get(key) for key in ("rank", "step", "first", "last")]
    why, text = content.get("why"), content.get("text", "")
    is_whole = all(isinstance(number, int) and -1 <= number < 1 << 62 for number in numbers)
    if match is None or not is_whole or not isinstance(why, str) or not isinstance(text, str):
        raise FormatError(f"{file}: expected an incident of a flight recorder, got {str(content)[:120]}. Remove it.")
    rank, step, first, last = (int(str(number)) for number in numbers)
    if last - first > _MAX_STEPS:
        raise FormatError(f"{file}: expected at most {_MAX_STEPS} steps, got {first} to {last}. Remove it.")
    moment = content.get("time")
    seconds = float(moment) if isinstance(moment, (int, float)) else 0.0
    return Incident(why[:_MAX_TEXT], text[:_MAX_TEXT], rank, step, first, last, seconds, int(match[1]))


def read_json(file: Path) -> dict[str, Any]:
    """An object in a small file.   Raises: FormatError; OSError."""
    try:
        content = json.loads(read_plain(file, _MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: expected JSON, got something else: {error}. Remove it.") from error
    if not isinstance(content, dict):
        raise FormatError(f"{file}: expected a JSON object, got {str(content)[:120]}. Remove it.")
    return content


def _request_of(file: Path) -> TriggerRequest:
    """Any file asks, also an empty one."""
    try:
        content = read_json(file)
    except (FormatError, OSError):
        return TriggerRequest("trigger.json")
    why, offset = content.get("why"), content.get("step")
    is_number = isinstance(offset, int) and not isinstance(offset, bool) and 0 <= offset <= _MAX_STEPS
    return TriggerRequest(
        why[:_MAX_TEXT] if isinstance(why, str) else "trigger.json", int(str(offset)) if is_number else 0
    )
