"""What a run shows while it waits for the threads that write its dump."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from msdump.cli.printing import is_terminal, put
from msdump.config.environment import format_size

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from msdump.process.sessions import Pool, PoolProgress

_TICK_SECONDS = 0.2


def wait_for_writers(pool: Pool, stream: TextIO) -> bool:
    """Wait until everything is written; on a terminal with a progress line, elsewhere with one line that says so.

    False: Ctrl-C. Files that threads are in the middle of become whole, the others are counted as lost.
    """
    try:
        if not pool.drain(_TICK_SECONDS):
            _wait(pool, stream)
    except KeyboardInterrupt:
        pool.give_up()
        return False
    return True


def _wait(pool: Pool, stream: TextIO) -> None:
    if not is_terminal(stream):
        state = pool.state()
        waiting, written = format_size(state.queued_bytes), format_size(state.written_bytes)
        text = f"msdump: the script has ended; {waiting} still wait to be written, {written} are."
        put(text, stream, flush=True)
        pool.drain()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("writing"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        _follow(pool, progress, progress.add_task(""))


def _follow(pool: Pool, progress: Progress, task: TaskID) -> None:
    """Show how far the writers are, until they are done."""
    first, started = pool.state().written_bytes, time.perf_counter()
    is_done = False
    while not is_done:
        is_done = pool.drain(_TICK_SECONDS)
        state = pool.state()
        done = state.written_bytes - first
        progress.update(
            task,
            completed=done,
            total=done + state.queued_bytes,
            description=describe(state, done / (time.perf_counter() - started)),
        )


def describe(state: PoolProgress, bytes_per_second: float) -> str:
    """One line: bytes that wait, bytes on disk, throughput."""
    return (
        f"{format_size(state.queued_bytes)} queued, {format_size(state.written_bytes)} written, "
        f"{format_size(round(bytes_per_second))}/s"
    )
