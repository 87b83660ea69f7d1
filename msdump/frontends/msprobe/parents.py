"""Which module call, backward or optimizer stands around each record: the text of `construct.json`.

Source: mindstudio-probe 26.2, files that it wrote, and their order.
"""

from __future__ import annotations

import threading

OPTIMIZER, CLIP = "optimizer", "clip_grad"


class Parents:
    """Of one step. The caller holds a lock.

    shows_functions  whether functions stand there beside modules
    phase            what runs outside of modules: OPTIMIZER, CLIP, or ""
    """

    def __init__(self, shows_functions: bool) -> None:
        self.by_name: dict[str, str | None] = {}
        self.phase = ""
        self._shows_functions = shows_functions
        # Modules that began and that no record has come behind yet.
        self._waiting: dict[str, str | None] = {}
        # By thread: modules that are running, the innermost last.
        self._stacks: dict[int, list[str]] = {}
        # Of all threads, in the order in which they began.
        self._running: dict[str, None] = {}

    def begin(self, name: str) -> None:
        """A module is called, or its backward begins."""
        stack = self._stacks.setdefault(threading.get_ident(), [])
        self._waiting[name] = stack[-1] if stack else self._enclosing(name)
        self._running[name] = None
        stack.append(name)

    def end(self, name: str) -> None:
        """The innermost module of this thread has ended."""
        self._running.pop(name, None)
        stack = self._stacks.get(threading.get_ident())
        if stack:
            stack.pop()

    def note(self, name: str) -> None:
        """A record is complete."""
        if self.phase:
            self.by_name.setdefault(self.phase, None)
            self.by_name[name] = self.phase
        elif self._shows_functions and not name.startswith(("Module.", "Cell.")):
            stack = self._stacks.get(threading.get_ident())
            self.by_name[name] = stack[-1] if stack else None
        self.by_name.update(self._waiting)
        self._waiting.clear()

    def _enclosing(self, name: str) -> str | None:
        """The last running module that has this one as its child, where threads of autograd begin without any.

        Names are Module.{path}.{class}.{stage}.{number}; the path of a child has one part more.
        """
        parts = name.split(".")
        path = parts[:-4]
        if len(parts) < 5 or path in (["Module"], ["Cell"]):
            return None
        return next((running for running in reversed(self._running) if running.split(".")[:-3] == path), None)
