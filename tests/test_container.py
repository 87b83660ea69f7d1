"""docker/: the entry point starts the viewer on a dump, and the image gets what its build reads.

tests/platforms/container.sh builds the image and asks the viewer in it.
"""

from __future__ import annotations

import http.cookiejar
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import msdump
from tests.analysis.small_dump import floats, write_dump
from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "docker/Dockerfile"


def steps() -> list[tuple[str, str]]:
    """("RUN", "apt-get ..."), of the Dockerfile, with its continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = re.findall(r"^([A-Z]+) (.*)$", text.replace("\\\n", " "), re.MULTILINE)
    assert len(found) == len(text.replace("\\\n", " ").strip().splitlines()) - text.count("\n\n")
    return found


@pytest.fixture
def path_with_msdump(tmp_path: Path) -> str:
    """PATH as in the image: with a program `msdump`, which is the package that is tested."""
    program = tmp_path / "bin/msdump"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(PACKAGE.parent))} exec {sys.executable} -m msdump "$@"\n'
    )
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def entry(tmp_path: Path) -> str:
    """The entry point, by the way that the image has it."""
    (words,) = (words for word, words in steps() if word == "COPY" and words.startswith("docker/entry "))
    (point,) = (words for word, words in steps() if word == "ENTRYPOINT")
    assert words.split()[1] == point.strip('[]"') and os.access(ROOT / words.split()[0], os.X_OK)
    return str(ROOT / words.split()[0])


@pytest.fixture
def served(tmp_path: Path, entry: str, path_with_msdump: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    values = {("input", 0): floats(-1, 1), ("output", 0): floats(np.nan, 0)}
    dump = write_dump(tmp_path / "dump", [("Net/Log-op0", values)])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [entry, "view", str(dump), "--port", str(port)],
        env={**os.environ, "PATH": path_with_msdump, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip(), port
    finally:
        process.kill()
        process.communicate()


def test_the_entry_point_serves_the_viewer_to_all_addresses(served: tuple[subprocess.Popen[str], str, int]) -> None:
    process, url, port = served
    assert url.startswith(f"http://127.0.0.1:{port}/?token=")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    assert b'<div id="app">' in opener.open(url, timeout=30).read()
    listening = Path("/proc/net/tcp").read_text()
    assert f" 00000000:{port:04X} 00000000:0000 0A" in listening
    # The runtime of the container stops it so; the entry point is no process of its own by then.
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and errors == ""


def test_the_entry_point_passes_all_else_on(entry: str, path_with_msdump: str) -> None:
    done = subprocess.run(
        [entry, "--version"], env={**os.environ, "PATH": path_with_msdump}, capture_output=True, text=True
    )
    assert done.stdout.split()[-1] == msdump.__version__ and done.returncode == 0


def test_the_image_runs_as_nobody_in_particular() -> None:
    order = [word for word, _ in steps()]
    (user,) = (words for word, words in steps() if word == "USER")
    assert int(user) >= 1000 and order.index("USER") < order.index("ENTRYPOINT")
    assert f"--uid {user} " in next(words for word, words in steps() if "useradd" in words)


def test_the_build_gets_what_the_wheel_is_made_of() -> None:
    """.dockerignore hides all but what it names."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in lines
    named = {line[1:].split("/")[0] for line in lines if line.startswith("!")}
    needed = {"setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "msdump", "docs", "native", "docker"}
    if not (ROOT / "msdump").is_dir():
        pytest.skip("the package is not in this tree")
    needed |= {path.resolve().relative_to(ROOT).parts[0] for path in (ROOT / "msdump").rglob("*") if path.is_symlink()}
    assert named == needed


def test_the_extras_are_there() -> None:
    extras = re.findall(r"/src\[([\w,]+)\]", DOCKERFILE.read_text(encoding="utf-8"))[0].split(",")
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert "view" in extras and all(re.search(rf"^{extra} = ?$", setup, re.MULTILINE) for extra in extras)
