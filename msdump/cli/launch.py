"""Run a user's script or module inside this process as Python would."""

from __future__ import annotations

import io
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msdump._version import FOLDER
from msdump.cli.exit_status import FAILED, FINE, INTERRUPTED, REFUSED
from msdump.cli.printing import complain
from msdump.errors import ConfigError, FolderError, MsdumpError
from msdump.process.termination import end_script


def run_script(path: str, arguments: Sequence[str]) -> int:
    """Run a file as `__main__`, with `sys.argv` and `sys.path[0]` as `python FILE ARGS` sets them.

    Edges:   `sys.exit` gives its code; an exception prints its traceback and gives 1; Ctrl-C gives 130 and
             SIGTERM 143, both after the script's own `finally` blocks have run.
    Raises:  ConfigError when the file cannot be read or is a folder.
    """
    source = read_script(path)
    _enter([path, *arguments], os.path.dirname(os.path.realpath(path)))
    # Python's own, too: the path is still right when the script has changed its folder.
    path = os.path.join(os.getcwd(), path)
    main_module = _main_module(path)

    def execute() -> None:
        exec(compile(source, path, "exec"), main_module.__dict__)

    return _status_of(execute)


def read_script(path: str) -> bytes:
    """Raises: ConfigError when the file cannot be read or is a folder."""
    try:
        with io.open_code(os.path.abspath(path)) as file:
            return file.read()
    except OSError as error:
        raise ConfigError(
            f"{path}: expected a Python script, got {error.strerror}. Give the path of a file."
        ) from error


def run_module(name: str, arguments: Sequence[str]) -> int:
    """Run a module or package as `__main__`, as `python -m NAME ARGS` does.   Edges: as `run_script`."""
    _enter([name, *arguments], os.getcwd())
    return _status_of(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def _enter(argv: list[str], folder: str) -> None:
    """Give the process the command line and the first import folder that the script expects."""
    sys.argv = argv
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _main_module(path: str) -> types.ModuleType:
    """A fresh `__main__`. It stays: pickle, multiprocessing and `inspect` look for it after the script ended."""
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path, __builtins__=__builtins__, __cached__=None, __loader__=None, __package__=None, __spec__=None
    )
    sys.modules["__main__"] = module
    return module


def _status_of(execute: Callable[[], object]) -> int:
    try:
        with on_sigterm(leave):
            execute()
    except SystemExit as error:
        return _code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except MsdumpError as error:
        _print_own_error(error, error.__traceback__)
        return _status_of_own_error(error)
    except BaseException as error:  # noqa: BLE001 - Python's own top level prints everything, and so does this
        # What a backend raises comes wrapped up by torch.compile.
        inner = getattr(error, "inner_exception", None)
        if isinstance(inner, MsdumpError):
            _print_own_error(inner, error.__traceback__)
            return _status_of_own_error(inner)
        error = error.with_traceback(_without_launcher(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        return FAILED
    return FINE


def _status_of_own_error(error: MsdumpError) -> int:
    """A folder that cannot be written has one status, whoever names it: the command, a configuration or the script."""
    return REFUSED if isinstance(error, FolderError) else FAILED


def _print_own_error(error: MsdumpError, trace: types.TracebackType | None) -> None:
    """Print the user's frames and the message, without the frames of msdump and PyTorch."""
    folders = [FOLDER]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        folders.append(os.path.dirname(os.path.abspath(torch.__file__)) + os.sep)
    shown = traceback.TracebackException(type(error), error, trace)
    shown.__cause__ = shown.__context__ = None
    shown.stack = traceback.StackSummary.from_list(
        [frame for frame in shown.stack if not os.path.abspath(frame.filename).startswith(tuple(folders))]
    )
    complain("".join(shown.format()), end="")


def _code_of(error: SystemExit) -> int:
    if error.code is None:
        return FINE
    if isinstance(error.code, int):
        return error.code
    # The script's own words, as Python itself prints them.
    if sys.stderr is not None:
        print(error.code, file=sys.stderr)
    return FAILED


def _without_launcher(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback from the script's first frame on, without the frames of the launcher."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


@contextmanager
def on_sigterm(handler: Callable[[int, types.FrameType | None], object] | signal.Handlers) -> Iterator[None]:
    """Another answer to SIGTERM for a while. Only the main thread may ask; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def leave(number: int, frame: types.FrameType | None) -> None:
    """Signal handler that unwinds the script as `sys.exit` would, so that open dumps are finished."""
    end_script(number)
