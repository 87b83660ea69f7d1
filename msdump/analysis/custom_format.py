"""Format converters that the user brings: `format_convert/convert_{FROM}_to_{TO}.py` below a folder of theirs.

The file has `convert(shape_from, shape_to, array)`, which gets two lists and the flat array and returns an array.
Source: CANN, custom format conversion.
"""

from __future__ import annotations

import importlib.util
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.arrays import Array


class CustomFormats:
    """Converters below one folder, loaded when the first tensor needs them. Any thread may call it.

    Raises:  AnalysisError when there is no `format_convert` in the folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder) / "format_convert"
        if not self.folder.is_dir():
            raise AnalysisError(
                ExitCode.INVALID_PATH,
                f'{folder}: expected a folder that holds "format_convert", got none. Give the folder above it.',
            )
        self._functions: dict[Path, Callable[..., Any]] = {}
        self._lock = threading.Lock()

    def has(self, source: str, target: str) -> bool:
        return self._path(source, target).is_file()

    def convert(self, array: Array, source: str, target: str, shape: Sequence[int] | None) -> Array:
        """What the user's function returns; an unknown target shape is that of the tensor.

        Raises:  AnalysisError: the file is open to strangers, has no `convert`, raises, or returns something else.
        """
        path = self._path(source, target)
        with self._lock:
            function = self._functions.get(path)
            if function is None:
                function = self._functions[path] = _load(path)
        goal = list(array.shape if shape is None else shape)
        try:
            converted = function(list(array.shape), goal, array.reshape(-1))
        except Exception as error:  # the user's code may raise anything; it is told as this tensor's failure
            raise AnalysisError(
                ExitCode.INVALID_CONVERT_FUNC, f"{path}: convert raised {type(error).__name__}: {error}."
            ) from error
        if not isinstance(converted, np.ndarray):
            raise AnalysisError(
                ExitCode.INVALID_CONVERT_FUNC,
                f"{path}: expected an array from convert, got {type(converted).__name__}.",
            )
        return converted

    def _path(self, source: str, target: str) -> Path:
        return self.folder / f"convert_{source}_to_{target}.py"


def _load(path: Path) -> Callable[..., Any]:
    if path.stat().st_mode & stat.S_IWOTH:
        raise AnalysisError(
            ExitCode.DANGER_FILE,
            f"{path}: expected a file that only its owner can change, got one that anybody can. Run chmod o-w on it.",
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AnalysisError(ExitCode.INVALID_CONVERT_FUNC, f"{path}: expected a Python file.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        raise AnalysisError(
            ExitCode.INVALID_CONVERT_FUNC, f"{path}: expected it to load, got {type(error).__name__}: {error}."
        ) from error
    function = getattr(module, "convert", None)
    if not callable(function):
        raise AnalysisError(
            ExitCode.INVALID_CONVERT_FUNC,
            f"{path}: expected a function convert(shape_from, shape_to, array), got none.",
        )
    return function  # type: ignore[no-any-return]  # a stranger's function
