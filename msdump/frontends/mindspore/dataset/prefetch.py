"""The next rows, computed by a background thread while the training loop uses the last ones."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator

from msdump.frontends.mindspore.dataset.rows import Row, Values

# Finished rows that may wait: bytes, so that the rule is the same for pixels and for batches of 227 x 227 images.
BYTE_BUDGET = 64 * 2**20


class _Channel:
    """Bounded queue between one producer and one consumer that either side may close.

    A row larger than the budget passes alone. Owned by both threads; every field is guarded by `_changed`.
    """

    def __init__(self, row_limit: int) -> None:
        self._row_limit = row_limit
        self._rows: deque[tuple[Values, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._is_finished = False
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, values: Values) -> bool:
        """Wait for room, then add a row. False: nobody wants rows any more."""
        size_bytes = sum(value.nbytes for value in values)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(size_bytes))
            if self._is_closed:
                return False
            self._rows.append((values, size_bytes))
            self._bytes += size_bytes
            self._changed.notify_all()
            return True

    def finish(self, error: BaseException | None) -> None:
        """No more rows will come, because of `error` or because that was all."""
        with self._changed:
            self._error = error
            self._is_finished = True
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody wants rows any more; a waiting producer wakes up and ends."""
        with self._changed:
            self._is_closed = True
            self._rows.clear()
            self._changed.notify_all()

    def get(self) -> Values | None:
        """The next row, or None after the last.   Raises: whatever stopped the producer, after its last good row."""
        with self._changed:
            self._changed.wait_for(lambda: self._rows or self._is_finished)
            if self._rows:
                values, size_bytes = self._rows.popleft()
                self._bytes -= size_bytes
                self._changed.notify_all()
                return values
            if self._error is not None:
                raise self._error
            return None

    def _has_room(self, size_bytes: int) -> bool:
        if not self._rows:
            return True
        return len(self._rows) < self._row_limit and self._bytes + size_bytes <= BYTE_BUDGET


class PrefetchedRows:
    """Rows of one epoch, in order. The thread ends with the last row, with `close()`, or when this object is gone."""

    def __init__(self, rows: Iterator[Row], row_limit: int) -> None:
        self._channel = _Channel(row_limit)
        self._closer = weakref.finalize(self, self._channel.close)
        # The thread must not hold this object, or it would never be gone.
        self.thread = threading.Thread(target=_produce, args=(rows, self._channel), name="msdump-dataset", daemon=True)
        self.thread.start()

    def __iter__(self) -> PrefetchedRows:
        return self

    def __next__(self) -> Values:
        values = self._channel.get()
        if values is None:
            raise StopIteration
        return values

    def close(self) -> None:
        """Stop the thread; rows that were ready are dropped."""
        self._closer()


def _produce(rows: Iterator[Row], channel: _Channel) -> None:
    error: BaseException | None = None
    try:
        for row in rows:
            if not channel.put(row()):
                break
    except BaseException as raised:  # noqa: BLE001 - raised again in the training loop, where the user sees it
        error = raised
    channel.finish(error)
