"""`msdump native` makes builds that are whole, private and few; the compiler is a script that writes empty files."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from msdump.errors import ConfigError, WriteError  # noqa: E402
from msdump.frontends.torch.eager import native_building, native_builds  # noqa: E402
from msdump.frontends.torch.eager.listening import tells_of_compiling  # noqa: E402
from msdump.frontends.torch.eager.native_building import MOST_BUILDS, build, remove_all  # noqa: E402
from msdump.frontends.torch.eager.native_builds import build_name, existing_build  # noqa: E402
from msdump.process.user_cache import cache_folder  # noqa: E402

ROOT = Path(__file__).resolve().parents[4]
pytestmark = pytest.mark.skipif(not tells_of_compiling(), reason="this PyTorch does not tell when it compiles")
# Notes each call, does what a file beside it says, and writes the file behind -o.
COMPILER = """#!/bin/sh
folder=$(dirname "$0")
echo "$*" >> "$folder/calls"
. "$folder/behaviour"
for word in "$@"; do
    [ "$before" = -o ] && : > "$word"
    before=$word
done
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the compiler; the cache is new, and every build is taken to work."""
    folder = tmp_path / "tools"
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "Python.h").touch()
    (folder / "compiler").write_text(COMPILER)
    (folder / "compiler").chmod(0o700)
    (folder / "behaviour").touch()
    get_path = sysconfig.get_path
    monkeypatch.setattr(
        sysconfig, "get_path", lambda name: str(folder / "include") if name == "include" else get_path(name)
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", str(folder / "compiler"))
    monkeypatch.setattr(native_building, "check", lambda _: "")
    build_name.cache_clear()
    yield folder
    build_name.cache_clear()


def made() -> tuple[Path, bool]:
    return build(lambda: None, lambda: pytest.fail("nobody else builds"))


def left() -> set[str]:
    """Names in the folder of builds."""
    return {path.name for path in cache_folder("native").iterdir()}


def calls(tools: Path) -> list[str]:
    return (tools / "calls").read_text().splitlines() if (tools / "calls").exists() else []


def test_a_build_is_whole_and_private_and_made_once(tools: Path) -> None:
    before = os.umask(0)
    try:
        folder, is_new = made()
    finally:
        os.umask(before)
    assert is_new and folder == existing_build() and left() == {folder.name}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = {"msdump_native.py", "_msdump_native_cuda.py", "_msdump_native_built.py", f"_msdump_native{suffix}"}
    assert {path.name for path in folder.iterdir()} == {*modules, "build.json"}
    for path in (folder.parent.parent, folder.parent, folder, *folder.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path
    count = len(calls(tools))
    assert made() == (folder, False) and len(calls(tools)) == count


def test_every_source_is_compiled_and_linked(tools: Path) -> None:
    made()
    *compiled, linked = sorted(calls(tools), key=lambda line: "-shared" in line)
    objects = [line.rpartition("-o ")[2] for line in compiled]
    assert "-shared" in linked and all(each in linked for each in objects)
    alone = {line.partition(" -c ")[2].split()[0].rpartition("/")[2] for line in compiled}
    units = {name.removeprefix("src/") for name in native_builds.sources() if name.endswith(".cpp")}
    compiling = native_building.recipe(ROOT / "native" / "compiling.py") if (ROOT / "native").is_dir() else None
    if compiling is not None:
        assert (alone - {"together.cpp"}) | set(compiling._TOGETHER) == units


def test_the_first_error_of_the_compiler_is_said_and_all_is_in_a_log(tools: Path) -> None:
    (tools / "behaviour").write_text('echo "In file included"; echo "m.cpp:3:1: error: no member x"; echo more; exit 1')
    with pytest.raises(
        ConfigError, match=r"the compiler: m.cpp:3:1: error: no member x\. All that it said: (.*)"
    ) as told:
        made()
    log = Path(str(told.value).rpartition("said: ")[2])
    assert "more" in log.read_text() and left() == {log.name} and existing_build() is None


def test_a_compiler_that_is_killed_for_memory(tools: Path) -> None:
    (tools / "behaviour").write_text('echo "g++: fatal error: Killed signal terminated program cc1plus"; exit 1')
    with pytest.raises(ConfigError, match="MAX_JOBS=1 takes less memory"):
        made()


def test_a_full_disk(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tools / "behaviour").write_text('echo "x.s: error: cannot write: No space left on device"; exit 1')
    with pytest.raises(WriteError, match=r"no space left on device\. Free some, or set XDG_CACHE_HOME"):
        made()
    (tools / "behaviour").write_text("")

    def copyfile(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(WriteError, match="no space left on device"):
        made()
    assert left() == set()


def test_what_is_missing_is_named_with_its_package(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ConfigError, match=r"no program no-such-compiler, which CXX names.*apt install g"):
        made()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(ConfigError, match=r"expected a C\+\+ compiler, got none of c\+\+, g\+\+, clang\+\+"):
        made()
    monkeypatch.setenv("CXX", str(tools / "compiler"))
    (tools / "include" / "Python.h").unlink()
    with pytest.raises(ConfigError, match=rf"apt install python3\.{sys.version_info[1]}-dev"):
        made()
    assert left() == set() and not calls(tools)


def test_a_build_that_does_not_work_is_not_kept(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_building, "check", lambda _: "it is broken")
    with pytest.raises(ConfigError, match="does not work: it is broken"):
        made()
    assert left() == set()


def test_a_build_that_works_no_more_is_replaced(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = made()
    (folder / "damaged").touch()
    monkeypatch.setattr(native_building, "check", lambda each: "damaged" if (each / "damaged").exists() else "")
    assert made() == (folder, True) and not (folder / "damaged").exists() and left() == {folder.name}


def test_the_builds_used_last_are_kept(tools: Path) -> None:
    root = cache_folder("native")
    for number in range(MOST_BUILDS + 2):
        (root / f"{number:016x}").mkdir()
        os.utime(root / f"{number:016x}", (1000 - number, 1000 - number))
    (root / "a note of the user").touch()
    folder, _ = made()
    kept = {f"{number:016x}" for number in range(MOST_BUILDS - 1)}
    assert left() == {*kept, folder.name, "a note of the user"}
    assert remove_all() == MOST_BUILDS and not root.exists() and remove_all() == 0


def test_a_folder_that_others_can_write_is_not_built_in(tools: Path) -> None:
    cache_folder("native").chmod(0o770)
    with pytest.raises(WriteError, match="this user alone can write"):
        made()
    assert not calls(tools)


@pytest.mark.usefixtures("alarm")
def test_of_two_at_once_one_builds_and_the_other_waits(tools: Path) -> None:
    (tools / "behaviour").write_text('while [ ! -e "$folder/go" ]; do sleep 0.05; done')
    results: list[tuple[Path, bool]] = []
    is_building, is_waiting = threading.Event(), threading.Event()

    def run() -> None:
        results.append(build(is_building.set, is_waiting.set))

    threads = [threading.Thread(target=run) for _ in range(2)]
    threads[0].start()
    is_building.wait()
    threads[1].start()
    is_waiting.wait()
    (tools / "go").touch()
    for thread in threads:
        thread.join()
    (first, first_is_new), (second, second_is_new) = results
    assert first == second == existing_build() and {first_is_new, second_is_new} == {True, False}
    assert sum("-shared" in line for line in calls(tools)) == 1 and left() == {first.name}


@pytest.mark.usefixtures("alarm")
def test_a_build_that_is_killed_leaves_nothing_that_is_loaded(tools: Path) -> None:
    (tools / "behaviour").write_text("sleep 1000")
    code = (
        "import sysconfig; get = sysconfig.get_path\n"
        f"sysconfig.get_path = lambda name: {str(tools / 'include')!r} if name == 'include' else get(name)\n"
        "from msdump.frontends.torch.eager.native_building import build\n"
        "build(lambda: None, lambda: None)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True)
    try:
        while not calls(tools):
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert existing_build() is None and len(left()) == 1
    (tools / "behaviour").write_text("")
    folder, is_new = made()
    assert is_new and left() == {folder.name}


def test_a_build_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    (tmp_path / "msdump_native.py").write_text("INTERFACE = -1\n")
    native_builds.describe(tmp_path)
    assert "another release" in native_building.check(tmp_path)
    (tmp_path / "msdump_native.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    assert "bytes, got" in native_building.check(tmp_path)
    native_builds.describe(tmp_path)
    assert "status -11" in native_building.check(tmp_path)
