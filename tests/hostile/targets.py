"""One function for each kind of input that a dump brings along: bytes in, a record or an error of msdump out."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msdump.analysis.compare.mapping import read_mapping as read_operator_map
from msdump.analysis.graph_info import read_graph
from msdump.analysis.msaccucmp.fusion_json import groups_of, read_fusion_json
from msdump.analysis.ranks.shardings import strategy_sharding
from msdump.config.acl import load_acl_config, plan_acl
from msdump.config.json_file import read_json_file
from msdump.config.mindspore import parse_mindspore_config
from msdump.errors import ConfigError, FormatError, WriteError, without_secrets
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.bin import read_bin
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_file import read_dump
from msdump.formats.exception import read_core
from msdump.formats.npy_reader import read_npy
from msdump.formats.opdebug import parse_opdebug_content, read_opdebug
from msdump.formats.pack_recovery import recover_tree
from msdump.formats.pack_tree import pack_tree, unpack_tree
from msdump.formats.paths.acl import (
    parse_async_path,
    parse_bin_file_name,
    parse_overflow_json_name,
    parse_stats_file_name,
)
from msdump.formats.paths.parse import parse_dump_name
from msdump.formats.paths.sync import parse_data_file_name, parse_sync_path
from msdump.formats.paths.torchair import (
    parse_graph_dump_name,
    parse_summary_name,
    parse_torchair_name,
    parse_torchair_path,
)
from msdump.formats.sharding_json import LAYOUT_FILE, read_sharding, sharding_text
from msdump.formats.sidecars import CONFIG_COPY_FILE, CONFIG_FILE, read_history, read_mapping, read_metadata, read_order
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.formats.strategy_file import read_strategy
from msdump.graph.ge import read_ge_originals
from msdump.graph.ir import parse_ir
from msdump.graph.pb import read_model
from msdump.process.front_ends import is_installed
from msdump.storage import files, remote
from msdump.storage.packs import split_pack_path
from msdump.viewing.redaction import redacted

Target = Callable[[bytes], None]
_STATS_NAME = "Add.add.1.2.1700000000000000.csv"
_PT_NAME = "Functional.linear.0.forward.input.1.pt"
_BIN_NAME, _NPY_NAME = "Add.a.1.0.1700000000000000", "Add.Add-op1.0.0.1.output.0.DefaultFormat.npy"


@contextmanager
def _file(data: bytes, name: str = "input") -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


def npy(data: bytes) -> None:
    with _file(data) as path:
        for is_mapped in (True, False):
            read_npy(path, is_mapped).sum(dtype=object if len(data) < 300 else None)


def bin(data: bytes) -> None:
    with _file(data) as path:
        for tensor in read_bin(path).tensors:
            bytes(tensor.payload)
            with contextlib.suppress(FormatError):
                tensor.array()


def core(data: bytes) -> None:
    with _file(data) as path:
        read_core(path)


def dump(data: bytes) -> None:
    with _file(data) as path:
        read_dump(path)


def pt(data: bytes) -> None:
    with _file(data, _PT_NAME) as path:
        _load_all(path)


def pt_pickle(data: bytes) -> None:
    """The archive around it is sound: its checksum would be the end of most damaged ones."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in (("data.pkl", data), ("byteorder", b"little"), ("data/0", bytes(128))):
            file.writestr(f"x/{name}", content)
    pt(archive.getvalue())


def torch_archive(data: bytes) -> None:
    with _file(data, "acts.pt") as path:
        _load_all(path)


def torch_pickle(data: bytes) -> None:
    """As `pt_pickle`, of a dictionary."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in (("data.pkl", data), ("byteorder", b"little"), ("data/0", bytes(128))):
            file.writestr(f"x/{name}", content)
    torch_archive(archive.getvalue())


def npz(data: bytes) -> None:
    with _file(data, "acts.npz") as path:
        _load_all(path)


def named_tensors(data: bytes) -> None:
    with _file(data, "acts.safetensors") as path:
        _load_all(path)


def polygraphy(data: bytes) -> None:
    with _file(data, "outputs.json") as path:
        _load_all(path)


def dump_folder_bin(data: bytes) -> None:
    with _file(data, _BIN_NAME) as path:
        _load_all(path)


def dump_folder_npy(data: bytes) -> None:
    with _file(data, _NPY_NAME) as path:
        _load_all(path)


def _load_all(path: Path) -> None:
    """What a command does with a file that has the name of a tensor: damage is kept apart, and reported as it is."""
    folder = DumpDir.open(path)
    for tensor in folder:
        tensor.load_host()
    for _, error in folder.damaged:
        raise error


def pack(data: bytes) -> None:
    """A pack, and one that its writer has not finished: read, verified, mended, taken apart, made again."""
    for name in ("5.tar", "5.tar.part"):
        with _file(data, name) as path:
            with contextlib.suppress(FormatError):
                _load_all(path.parent)
            with contextlib.suppress(FormatError):
                DumpDir.open(path.parent, strict=True).verify()
            with contextlib.suppress(FormatError, WriteError):
                list(recover_tree(path.parent))
            with contextlib.suppress(FormatError, WriteError):
                list(unpack_tree(path.parent))
            with contextlib.suppress(FormatError, WriteError):
                list(pack_tree(path.parent))
            above = [one.name for one in path.parent.parent.iterdir() if one.name == "escaped"]
            assert not above
    _unpack_keeps_all(data)


def _unpack_keeps_all(data: bytes) -> None:
    """A pack is gone only when every file that Python's own reader finds in it is there."""
    with _file(data, "5.tar") as path:
        with contextlib.suppress(FormatError, WriteError):
            list(unpack_tree(path))
        if path.exists():
            assert path.read_bytes() == data
            return
        with contextlib.suppress(tarfile.TarError, UnicodeError), tarfile.open(fileobj=io.BytesIO(data)) as opened:
            for member in opened:
                content = opened.extractfile(member) if member.isfile() or member.islnk() else None
                if content is not None and "/.msdump/" not in f"/{member.name}":
                    assert (path.parent / member.name).read_bytes() == content.read(), member.name


def history(data: bytes) -> None:
    with _file(data) as path:
        read_history(path)


def order(data: bytes) -> None:
    with _file(data) as path:
        read_order(path)


def graph_ir(data: bytes) -> None:
    with _file(data, "input.ir") as path:
        read_graph(path)


def graph_pb(data: bytes) -> None:
    with _file(data, "input.pb") as path:
        read_graph(path)


def statistic(data: bytes) -> None:
    with _file(data) as path:
        read_statistic_csv(path)


def acl_stats(data: bytes) -> None:
    with _file(data, _STATS_NAME) as path:
        read_acl_stats(path)


def mapping(data: bytes) -> None:
    with _file(data) as path:
        read_mapping(path)


def metadata(data: bytes) -> None:
    with _file(data, CONFIG_FILE) as path:
        path.with_name(CONFIG_COPY_FILE).write_bytes(data)
        read_metadata(path.parent)


def layout(data: bytes) -> None:
    with _file(data, LAYOUT_FILE) as path:
        read = read_sharding(path)
    sharding_text(read)
    for operand in read.operands:
        found = read.find(operand.graph_id, operand.name, operand.io, operand.slot, operand.iteration)
        if found is not None:
            assert read.rank in found.equal_ranks
            found.block(read.rank)


def strategy(data: bytes) -> None:
    for name in ("strategy.ckpt", "strategy.json"):
        with _file(data, name) as path, contextlib.suppress(FormatError):
            for one in read_strategy(path):
                strategy_sharding(one, 0, (4,) * len(one.tensor_map))


def ir(data: bytes) -> None:
    parse_ir(data.decode(errors="surrogateescape"))


def pb(data: bytes) -> None:
    read_model(data)


def ge(data: bytes) -> None:
    with _file(data) as path:
        read_ge_originals(path)


def opdebug(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        parse_opdebug_content(data, "input")
    with _file(data) as path:
        read_opdebug(path)


def opdebug_json(data: bytes) -> None:
    with _file(data, "input.json") as path:
        read_opdebug(path)


def fusion_json(data: bytes) -> None:
    with _file(data, "fusion.json") as path:
        groups_of(read_fusion_json(path))


def operator_map(data: bytes) -> None:
    for name in ("map.csv", "map.json", "dynamo_original_graph_1.txt"):
        with _file(data, name) as path, contextlib.suppress(ConfigError):
            read_operator_map(path).ignores(frozenset({"Add"}), "input", 0)


def mindspore_json(data: bytes) -> None:
    with _file(data, "dump.json") as path:
        parse_mindspore_config(read_json_file(path))


def acl_json(data: bytes) -> None:
    with _file(data, "acl.json") as path:
        config = load_acl_config(path)
        plan_acl(config, path.parent)


def checkpoint(data: bytes) -> None:
    from msdump.mindspore.train.checkpoint_files import from_checkpoint

    from_checkpoint(data, "input.ckpt")


def safetensors(data: bytes) -> None:
    from msdump.mindspore.train.checkpoint_files import from_safetensors

    from_safetensors(data, "input.safetensors")


def mindir(data: bytes) -> None:
    from msdump.mindspore.mindir.reader import from_mindir

    try:
        from_mindir(data, "input.mindir")
    except ValueError as error:
        # An operator or a function that cannot run here is no damage.
        if isinstance(error, FormatError) or not str(error).startswith("load: input.mindir"):
            raise


def address(data: bytes) -> None:
    """The first line is what a user may give in place of a path; no store is asked."""
    text = os.fsdecode(data.partition(b"\n")[0]).replace("\0", "")
    shown = redacted({"name": text, "path": text, "message": os.fsdecode(data)}, "/mnt/SECRET/dump")
    json.dumps(shown)
    message = without_secrets(os.fsdecode(data))
    assert without_secrets(message) == message
    split_pack_path(text)
    files.absolute(text or ".")
    if not remote.is_remote(text):
        return
    whole = remote.canonical(text)
    assert remote.is_remote(whole) and remote.canonical(whole) == whole
    if text.partition(":")[0] in remote._OBSTORE:
        remote.forget()
        _, root, path = remote.store_of(whole)
        assert f"{root}/{path}".rstrip("/") == whole.rstrip("/")


def viewer(data: bytes) -> None:
    from tests.hostile.viewer import answer_to

    answer = answer_to(data)
    assert not re.match(rb"HTTP/1\.1 5(?!03)", answer), answer[:200]


def names(data: bytes) -> None:
    text = os.fsdecode(data)
    for parse in (
        parse_data_file_name,
        parse_bin_file_name,
        parse_overflow_json_name,
        parse_stats_file_name,
        parse_dump_name,
        parse_torchair_name,
        parse_graph_dump_name,
        parse_summary_name,
        parse_sync_path,
        parse_async_path,
        parse_torchair_path,
    ):
        parse(text)  # type: ignore[operator]


TARGETS: dict[str, Target] = {
    target.__name__.replace("_", "-"): target
    for target in (
        *(npy, bin, core, dump, dump_folder_bin, dump_folder_npy, pt, pt_pickle, pack),
        *(torch_archive, torch_pickle, npz, named_tensors, polygraphy),
        *(statistic, acl_stats, mapping, metadata, layout, strategy, history, order, ir, pb, ge, graph_ir, graph_pb),
        *(opdebug, opdebug_json, mindspore_json, acl_json, fusion_json, operator_map, names, address),
        *((checkpoint, safetensors, mindir) if is_installed("mindspore") else ()),
        *((viewer,) if all(map(importlib.util.find_spec, ("starlette", "uvicorn"))) else ()),
    )
}


def feed(name: str, data: bytes) -> None:
    """Give bytes to a target.   Raises: whatever is neither a FormatError nor a ConfigError."""
    with contextlib.suppress(FormatError, ConfigError):
        TARGETS[name](data)
