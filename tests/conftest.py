"""Every test starts in the same place: no dump configured, no session open, MindSpore's defaults."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import os
import re
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from msdump.errors import KernelNotFoundError, WriteError
from msdump.process.front_ends import is_installed
from msdump.process.user_cache import cache_folder
from tests.slow import is_slow

ROOT = Path(__file__).resolve().parent.parent

# A busy machine fails no test: no example has a time limit.
settings.register_profile(
    "busy",
    deadline=None,
    max_examples=int(os.environ.get("TEST_EXAMPLES", 60)),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy")

_PREFIXES = ("MINDSPORE_", "MS_", "MSDUMP_", "ASCEND_", "ACL_", "DUMP_GE_", "DUMP_GRAPH_")
# pytest-xdist gives its workers the last two, which tell commands how wide lines may be. They are taken away here for
# fixtures of a session, and before each test.
os.environ.pop("COLUMNS", None)
# GNU readline, which pytest imports, sets them where os.environ does not see it and child processes do.
os.unsetenv("COLUMNS")
os.unsetenv("LINES")
# Answers are compared in English, whatever the machine speaks; its encoding stays UTF-8.
os.environ.pop("MSDUMP_LANGUAGE", None)
for _name in ("LC_ALL", "LC_MESSAGES", "LANG"):
    if os.environ.get(_name, "").startswith("zh"):
        os.environ[_name] = "C.UTF-8"
_NAMES = ("RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE", "DEVICE_ID", "GRAPH_OP_RUN", "COLUMNS", "LINES")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """In a tree without the stand-in for MindSpore: files that import it, themselves or through their helpers."""
    if is_installed("mindspore") or collection_path.suffix != ".py":
        return None
    return _imports_mindspore(collection_path) or None


@functools.cache
def _imports_mindspore(path: Path) -> bool:
    modules = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    if any(f"{module}.".startswith(("mindspore.", "msdump.mindspore.", "tests.mindspore.")) for module in modules):
        return True
    files = [ROOT.joinpath(*module.split(".")).with_suffix(".py") for module in modules if module.startswith("tests.")]
    return any(_imports_mindspore(file) for file in files if file.is_file())


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("msdump")
    group.addoption("--faults", type=int, default=8, help="failing system calls for each way into a dump")
    group.addoption("--kills", type=int, default=10, help="processes that are killed while they dump")
    group.addoption("--faults-seed", default="0", help="chooses other calls and moments for --faults and --kills")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker("slow")


_left_out = pytest.StashKey[int]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    if items:
        config = items[0].config
        config.stash[_left_out] = config.stash.get(_left_out, 0) + sum(1 for item in items if is_marked_slow(item))


def is_marked_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells how many tests it leaves out, which the runner does not count."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_left_out, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # Each worker collects all tests.
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(f"{count} slow tests are left to `-m slow` (.ci/slow)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Operators that PyTorch computes are not tested where there is none."""
    try:
        yield
    except Exception as error:
        # hypothesis raises a group where cases fail at several places.
        if find_spec("torch") is not None or not all(isinstance(one, KernelNotFoundError) for one in _single(error)):
            raise
        pytest.skip("needs PyTorch")


def _single(error: BaseException) -> Iterator[BaseException]:
    """An exception, or those of a group, which Python has from 3.11 on."""
    inner = getattr(error, "exceptions", None)
    yield from [error] if inner is None else itertools.chain.from_iterable(map(_single, inner))


@pytest.fixture(scope="session")
def needs_mindspore() -> None:
    """For tests and fixtures that import or start a script of MindSpore: skipped where nothing stands in for it."""
    if not is_installed("mindspore"):
        pytest.skip("needs the stand-in for MindSpore")


@pytest.fixture(autouse=True, scope="session")
def interrupt_reaches_processes() -> None:
    """A shell that runs the tests in the background lets them, and every process they start, ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Compiled headers lie in a folder of all runs: half a file of a run that was killed fails every later compilation.
# Set before a test module imports PyTorch, which reads it once.
os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"


@pytest.fixture(autouse=True, scope="session")
def inductor_compiles_anew(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a run of the tests that was killed left half written is not found."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.fspath(tmp_path_factory.mktemp("inductor"))


@pytest.fixture(autouse=True, scope="session")
def no_build_of_native_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the user has built: operators come to a dispatch mode, or to a package that is installed for the tests.

    Machine code is taken from the user's cache all the same.
    """
    if not {"HOME", "XDG_CACHE_HOME"} & os.environ.keys():
        return  # as the user would have none
    cache = tmp_path_factory.mktemp("cache")
    (cache / "msdump").mkdir(mode=0o700)
    with contextlib.suppress(WriteError):
        (cache / "msdump" / "code").symlink_to(cache_folder("code"))
    os.environ["XDG_CACHE_HOME"] = os.fspath(cache)


@pytest.fixture(autouse=True, scope="session")
def packs_are_verified_anew(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What earlier runs of the tests found is not believed, and the user's cache stays as it is, also at exit."""
    from msdump.storage.packs import verified

    folder = tmp_path_factory.mktemp("verified")
    verified.folder = lambda: folder


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in _variables():
        monkeypatch.delenv(name)
    monkeypatch.setattr("msdump.cli.printing._spoken", "en")
    yield
    # What a command of this process has set: fixtures of the next module would read it.
    for name in _variables():
        del os.environ[name]


def _variables() -> list[str]:
    """Those that are set, and say what is dumped and how."""
    return [name for name in os.environ if name.startswith(_PREFIXES) or name in _NAMES]


@pytest.fixture(autouse=True)
def no_session_left_open(clean_environment: None) -> Iterator[None]:
    """One process has one dump session; here each test may open its own."""
    yield
    redirect = sys.modules.get("msdump.frontends.torch.redirect")
    if redirect is not None:
        redirect.reset_for_tests()
    sessions = sys.modules.get("msdump.process.sessions")
    if sessions is not None:
        sessions.reset_for_tests()


@pytest.fixture(scope="session")
def plain_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose path is letters, digits and _ . - alone: some programs, msaccucmp among them, take no other."""
    folder = tmp_path_factory.mktemp("plain")
    if re.fullmatch(r"[\w./-]+", os.fspath(folder), re.ASCII):
        yield folder
    else:
        with tempfile.TemporaryDirectory(dir="/tmp") as name:
            yield Path(name)


@pytest.fixture
def plain_path(plain_root: Path) -> Path:
    """As `tmp_path`, below `plain_root`."""
    return Path(tempfile.mkdtemp(dir=plain_root))


@pytest.fixture
def alarm() -> Iterator[None]:
    """A test that would wait for ever fails: after two minutes, which no busy machine needs for what takes this."""

    def ring(*_: object) -> None:
        raise TimeoutError("the test did not end")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(120)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
