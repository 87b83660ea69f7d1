"""Folders of a dump through ACL: one time for the whole dump, and in it the folders of models and of operators."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from pathlib import Path

from msdump.config.acl_plan import AclPlan
from msdump.config.iterations import ALL_ITERATIONS
from msdump.engines.time_folder import claim_time
from msdump.formats.acl_layout import AclDumpLayout
from msdump.formats.async_layout import format_time
from msdump.records import TensorRecord


class AclFolders:
    """The folder of a dump's time, made when somebody first asks for it. Any thread may call it.

    root      None: nothing is made, and folders are below the current one
    on_made   told the folder of the device once it is there
    """

    def __init__(self, root: Path | None, device_id: int, on_made: Callable[[Path], None]) -> None:
        self._root = root
        self._device_id = device_id
        self._on_made = on_made
        self._layout: AclDumpLayout | None = None
        self._lock = threading.Lock()

    @property
    def home(self) -> Path | None:
        """Folder of the device; None before there is one."""
        return None if self._layout is None else self._layout.operator_dir

    def layout(self) -> AclDumpLayout:
        """Raises: WriteError when the folder cannot be made."""
        with self._lock:
            if self._layout is None:
                self._layout = self._begin()
            return self._layout

    def _begin(self) -> AclDumpLayout:
        if self._root is None:
            return AclDumpLayout("", format_time(datetime.datetime.now()), self._device_id)
        layout = AclDumpLayout(self._root, claim_time(self._root, self._device_id), self._device_id)
        self._on_made(layout.operator_dir)
        return layout


class ModelFolder:
    """Folders of one model, one for each iteration that is dumped.

    The number in a folder's name is the iteration's where the plan chooses iterations, else it counts from 0.
    Source: CANN, `data_index`.
    """

    def __init__(self, folders: AclFolders, model_name: str, model_id: int, plan: AclPlan) -> None:
        self.model_name = model_name
        self.model_id = model_id
        self._folders = folders
        self._plan = plan
        self._counts = plan.iterations == ALL_ITERATIONS
        self._index_by_iteration: dict[int, int] = {}

    def begins(self, iteration: int) -> bool:
        """Whether an iteration is dumped; if so it has a folder from now on."""
        if not self._plan.is_dumped_iteration(iteration):
            return False
        self.count(iteration)
        return True

    def count(self, iteration: int) -> None:
        """Graphs of one iteration share its number."""
        if self._counts:
            self._index_by_iteration.setdefault(iteration, len(self._index_by_iteration))

    def directory(self, record: TensorRecord) -> Path:
        """Folder of a record; any thread may ask.   Raises: WriteError."""
        index = self._index_by_iteration.get(record.iteration, record.iteration)
        return self._folders.layout().model_dir(self.model_name, self.model_id, index)


class OperatorFolder:
    """The folder of operators that are called one by one."""

    def __init__(self, folders: AclFolders) -> None:
        self._folders = folders

    def directory(self, record: TensorRecord) -> Path:
        """Folder of a record; any thread may ask.   Raises: WriteError."""
        return self._folders.layout().operator_dir
