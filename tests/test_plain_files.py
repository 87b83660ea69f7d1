"""Files of others: a pipe, a device or a link to one is refused, and nothing is read without a bound."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from msdump.analysis.graph_info import read_graph
from msdump.errors import FormatError
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.bin import read_bin
from msdump.formats.dump_file import read_dump
from msdump.formats.exception import read_core
from msdump.formats.npy_reader import read_npy
from msdump.formats.opdebug import read_opdebug
from msdump.formats.sidecars import CONFIG_COPY_FILE, read_history, read_mapping, read_metadata, read_order
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.graph.ge import read_ge_originals
from msdump.graph.pb import read_model
from msdump.plain_files import open_plain, plain_opener, read_plain

READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "acl_stats": (read_acl_stats, "Add.a.1.0.1700000000000000.csv"),
    "bin": (read_bin, "x"),
    "core": (read_core, "x.core"),
    "dump": (read_dump, "x"),
    "ge": (read_ge_originals, "x.txt"),
    "graph": (read_graph, "x.pb"),
    "history": (read_history, "x.csv"),
    "ir": (read_graph, "x.ir"),
    "mapping": (read_mapping, "x.csv"),
    "metadata": (lambda path: read_metadata(path.parent), CONFIG_COPY_FILE),
    "model": (read_model, "x.pb"),
    "npy": (read_npy, "x.npy"),
    "opdebug": (read_opdebug, "x.json"),
    "order": (read_order, "x.csv"),
    "statistic": (read_statistic_csv, "x.csv"),
}


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a pipe"


def link_to_pipe(path: Path) -> str:
    os.mkfifo(path.with_name("the_pipe"))
    path.symlink_to("the_pipe")
    return "a pipe"


def link_to_device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "a device"


@pytest.mark.parametrize("make", [pipe, link_to_pipe, link_to_device])
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_is_no_plain_file(
    reader: str, make: Callable[[Path], str], tmp_path: Path, alarm: None
) -> None:
    read, name = READERS[reader]
    kind = make(tmp_path / name)
    with pytest.raises(FormatError, match=f"expected a plain file, got {kind}"):
        read(tmp_path / name)


def test_folders_and_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="got a folder"):
        open_plain(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        # The address of a socket is at most 108 bytes long, the path of the folder may be longer.
        monkeypatch.chdir(tmp_path)
        server.bind("s")
        with pytest.raises(OSError, match="No such device"):
            open_plain(tmp_path / "s")


def test_sizes_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_plain(tmp_path / "x", 5) == b"12345"
    with pytest.raises(FormatError, match="expected at most 4 bytes, got 5"):
        read_plain(tmp_path / "x", 4)


@pytest.mark.parametrize(
    "reader", sorted(set(READERS) - {"npy", "ge", "graph", "ir", "model", "acl_stats", "statistic"})
)
def test_a_hole_costs_no_memory(reader: str, tmp_path: Path) -> None:
    """A file of 8 TiB that takes no room on disk, and whose first bytes say that all of it is a header."""
    read, name = READERS[reader]
    with open(tmp_path / name, "wb") as file:
        file.write(((8 << 40) - 8).to_bytes(8, "little"))
        file.truncate(8 << 40)
    with pytest.raises(FormatError):
        read(tmp_path / name)


@pytest.mark.parametrize("how", ["w", "a", "wb"])
def test_nothing_is_written_through_a_link_or_into_a_pipe(how: str, tmp_path: Path, alarm: None) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError), open(tmp_path / name, how, opener=plain_opener()):
            pass
    # With a reader at its other end a pipe can be opened.
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="a pipe has that name"), open(tmp_path / "pipe", how, opener=plain_opener()):
        pass
    os.close(reader)
    assert (tmp_path / "target").read_text() == "kept"
    with open(tmp_path / "new", how, opener=plain_opener()):
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
