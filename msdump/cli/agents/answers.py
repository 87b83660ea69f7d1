"""Run a command of msdump for an agent, and give its answer in parts of a bounded size.

Each command is a process of its own: what a damaged or hostile dump does to it, it does not do to the server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE, statuses
from msdump.config.environment import LANGUAGE
from msdump.errors import MsdumpError

MOST_BYTES = 3600  # of an answer as JSON has it; a result has it twice, as text and as structured content
_LONG_LINE = 2000  # letters of a line that stay when it has to be cut
# Not `-m msdump`, which looks for modules in the current folder first: it may hold files of strangers.
_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from msdump.cli.main import main; sys.exit(main())"
_ANSWERED = (FINE, FOUND, INCOMPLETE)


class NoAnswerError(MsdumpError):
    """A command has no answer; the message is what it says."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of an answer.   first, last: their numbers, from 1 on; count: of all"""

    text: str
    first: int
    last: int
    count: int


class Answers:
    """Answers of commands, the last one kept for those who ask for the rest of it."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._last: tuple[list[tuple[str, ...]], str] = ([], "")

    async def ask(self, *commands: Sequence[str], from_line: int = 1) -> str:
        """What commands say, one after the other, from a line on: the words behind `msdump` of each.

        Edges:  lines that do not fit are left out, and the last line says how to get them. The end of the answer has
                the exit status and its meaning, where it is not 0.
        Raises: NoAnswerError when all fail, or take too long.
        """
        key = [tuple(words) for words in commands]
        # The rest is that of the answer which the agent has begun to read, not of a dump that has grown meanwhile.
        text = self._last[1] if from_line > 1 and self._last[0] == key else await self._all(key)
        self._last = key, text
        part = cut(text, from_line)
        if part.first == 1 and part.last == part.count:
            return part.text
        left = f"lines {part.first} to {part.last} of {part.count}"
        if part.last < part.count:
            left += f"; the same call with from_line={part.last + 1} goes on"
        return f"{part.text}\n[{left}]"

    async def _all(self, commands: Sequence[tuple[str, ...]]) -> str:
        texts: list[str] = []
        problems: list[str] = []
        for words in commands:
            try:
                texts.append(await self._run(words))
            except NoAnswerError as error:
                problems.append(str(error))
        if not texts:
            raise NoAnswerError(cut("\n".join(problems), 1).text)
        return "\n\n".join([*texts, *problems])

    async def _run(self, words: tuple[str, ...]) -> str:
        command = [sys.executable, "-c", _PROGRAM, *words]
        try:
            with anyio.fail_after(self._timeout_s):
                done = await anyio.run_process(command, stdin=subprocess.DEVNULL, check=False, env=_environment())
        except TimeoutError:
            raise NoAnswerError(
                f"expected an answer in {self._timeout_s:g} s, got none. Select fewer steps by rank, graph and "
                "iteration, or start the server with a longer --timeout."
            ) from None
        said, beside = (text.decode(errors="backslashreplace").strip("\n") for text in (done.stdout, done.stderr))
        if done.returncode < 0:
            name = signal.Signals(-done.returncode).name
            raise NoAnswerError(f"msdump {words[0]} was ended by {name}. Is a file of the dump damaged?")
        if done.returncode not in _ANSWERED or not said:
            raise NoAnswerError(beside or said or f"msdump {words[0]} said nothing")
        meaning = statuses(words[0]).get(done.returncode, "")
        verdict = f"(exit status {done.returncode}: {meaning})" if done.returncode else ""
        return "\n".join(filter(None, (said, beside, verdict)))


def _environment() -> dict[str, str]:
    """Lines stay whole, letters are UTF-8, words English as the descriptions of the tools are."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**kept, "PYTHONIOENCODING": "utf-8:backslashreplace", LANGUAGE: "en"}


def cut(text: str, from_line: int) -> Part:
    """The lines from one on that fit into MOST_BYTES, one at least; a line that is too long loses its end.

    Edges: from a line on that is not there: the last one.
    """
    lines = text.split("\n")
    first = min(max(1, from_line), len(lines))
    kept: list[str] = []
    room = MOST_BYTES
    for line in lines[first - 1 :]:
        size = _size(line)
        if size > room and (kept or size > MOST_BYTES):
            if kept:
                break
            line = f"{line[:_LONG_LINE]} [{len(line) - _LONG_LINE} more letters of this line]"
            while _size(line) > MOST_BYTES:  # letters that JSON writes out take six bytes
                line = line[: len(line) // 2]
        room -= _size(line)
        kept.append(line)
    return Part("\n".join(kept), first, first + len(kept) - 1, len(lines))


def _size(line: str) -> int:
    """Bytes of a line in JSON, with its end."""
    return len(json.dumps(line, ensure_ascii=False).encode(errors="backslashreplace"))
