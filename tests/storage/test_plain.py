"""Files of others: a pipe, a device or a link to one is refused, and nothing is read without a bound."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from msdump.analysis.compare.mapping import add_pair
from msdump.analysis.compare.mapping import read_mapping as read_operator_map
from msdump.analysis.graph_info import read_graph
from msdump.analysis.msaccucmp.fusion_json import read_fusion_json
from msdump.config.acl_file import read_acl_file
from msdump.config.json_file import read_json_file
from msdump.errors import FormatError, MsdumpError
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
from msdump.storage.plain import open_plain, plain_opener, read_plain
from msdump.viewing.report_file import _write as write_report

READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "acl_json": (read_acl_file, "x.json"),
    "acl_stats": (read_acl_stats, "Add.a.1.0.1700000000000000.csv"),
    "bin": (read_bin, "x"),
    "core": (read_core, "x.core"),
    "dump": (read_dump, "x"),
    "fusion_json": (read_fusion_json, "x.json"),
    "ge": (read_ge_originals, "x.txt"),
    "graph": (read_graph, "x.pb"),
    "history": (read_history, "x.csv"),
    "ir": (read_graph, "x.ir"),
    "mapping": (read_mapping, "x.csv"),
    "metadata": (lambda path: read_metadata(path.parent), CONFIG_COPY_FILE),
    "mindspore_json": (read_json_file, "x.json"),
    "model": (read_model, "x.pb"),
    "npy": (read_npy, "x.npy"),
    "opdebug": (read_opdebug, "x.json"),
    "operator_map_csv": (read_operator_map, "x.csv"),
    "operator_map_json": (read_operator_map, "x.json"),
    "order": (read_order, "x.csv"),
    "pair": (lambda path: add_pair(path, "mine", "golden"), "x.json"),
    "report": (lambda path: write_report(path, b""), "x.html"),
    "statistic": (read_statistic_csv, "x.csv"),
}


# What is refused before it is opened.
OWN_REFUSALS = {
    "acl_json": "expected an acl.json, got something that is no regular file",
    "mindspore_json": r"/dev/zero: expected a name that ends in \.json",
}


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a pipe"


def link_to_pipe(path: Path) -> str:
    target = f"the_{path.name}"
    os.mkfifo(path.with_name(target))
    path.symlink_to(target)
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
    with pytest.raises(MsdumpError, match=f"expected a plain file, got {kind}|{OWN_REFUSALS.get(reader)}"):
        read(tmp_path / name)


@pytest.mark.parametrize("make", [pipe, link_to_pipe, link_to_device])
def test_files_of_models_are_plain_ones(make: Callable[[Path], str], tmp_path: Path, alarm: None) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from msdump.cli.acl import _read
    from msdump.frontends.acl.atc import atc_of
    from msdump.frontends.acl.calls import CallError
    from msdump.frontends.onnx.inference import DeclaredTensor
    from msdump.frontends.onnx.model_file import read_model as read_onnx

    for suffix in ("onnx", "atc", "npy"):
        (tmp_path / suffix).mkdir()
        kind = make(tmp_path / suffix / f"x.{suffix}")
    refusal = f"expected a plain file, got {kind}"
    with pytest.raises(FormatError, match=refusal):
        read_onnx(tmp_path / "onnx" / "x.onnx")
    with pytest.raises(CallError, match=refusal):
        atc_of(str(tmp_path / "atc" / "x.onnx"), {})
    with pytest.raises(FormatError, match=refusal):
        _read(str(tmp_path / "npy" / "x.npy"), DeclaredTensor("x", "float32", (1,)))


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
    "reader", sorted(set(READERS) - {"npy", "report", "ge", "graph", "ir", "model", "acl_stats", "statistic"})
)
def test_a_hole_costs_no_memory(reader: str, tmp_path: Path) -> None:
    """A file of 8 TiB that takes no room on disk, and whose first bytes say that all of it is a header."""
    read, name = READERS[reader]
    with open(tmp_path / name, "wb") as file:
        file.write(((8 << 40) - 8).to_bytes(8, "little"))
        file.truncate(8 << 40)
    with pytest.raises(MsdumpError):
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
