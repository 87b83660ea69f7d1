"""Dumps of every front end as digests, to hold one commit against another.

    python -m tests.reference.frozen_dumps OUT [--root TREE]

OUT is a JSON file: program -> file of its dump -> digest of its bytes, without time stamps, process numbers, durations,
addresses of the folder and lines of msdump's own code. Two commits write equal bytes where `diff` finds their files
equal. The numbers are those of this machine and its libraries, so nothing is kept in the repository.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from msdump.formats._proto.dump_data_pb2 import DumpData

ROOT = Path(__file__).resolve().parent.parent.parent
_PROGRAMS = Path(__file__).resolve().parent / "frozen"
_SCRIPTS = ("vision_transformer", "shufflenet", "jit_function", "control_flow", "lstm_crf", "mixed_precision")
_COMMON = {
    "dump_mode": 0,
    "net_name": "Net",
    "iteration": "0-1",
    "input_output": 0,
    "kernels": [],
    "support_device": [0],
}
_MASKS = [
    (re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.,]\d+)?([+-]\d\d:?\d\d)?"), b"<time>"),
    (re.compile(rb"msdump/[\w/]+\.py(:|\", line |, line )\d+"), b"<msdump>"),
    (re.compile(rb"\d{13,}"), b"<stamp>"),
    (re.compile(rb"(?<!\d)20\d{12}(?!\d)"), b"<stamp>"),
    (re.compile(rb"run_20\d\d(_\d+)+(-pid_\d+)?"), b"<run>"),
    (re.compile(rb"((?:pid|proc)[\"_ :]*)\d+"), rb"\1<pid>"),
    (re.compile(rb"0x[0-9a-f]{6,}"), b"<address>"),
]
_ACL = re.compile(r"^[^.]+\.[^.]+\.\d+\.\d+\.\d{13,}$")
_TEXT = (".json", ".csv", ".ir", ".txt", ".dot", ".pbtxt", ".py", ".yaml")


def _dump_config(folder: Path, saved_data: str = "full") -> str:
    common = {**_COMMON, "path": str(folder / "dump"), "saved_data": saved_data}
    e2e = {"enable": True, "trans_flag": True}
    path = folder / "config.json"
    path.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": e2e}), encoding="utf-8")
    return str(path)


def programs(root: Path, folder: Path) -> dict[str, list[list[str]]]:
    """Commands of each program, run in a folder of its own below `folder`; they come after the name of the Python."""
    run = ["-m", "msdump", "run"]
    samples, acl = root / "sample_code", root / "sample_code" / "acl"
    probe = root / "tests" / "golden" / "msprobe" / "debugger"
    commands: dict[str, list[list[str]]] = {
        f"mindspore {name}": [["-m", "tests.scripts.run_all", ".", name]] for name in _SCRIPTS
    }
    for name in [*commands, "torch compiled", "torch eager", "torch eager statistics", "acl onnx"]:
        (folder / name).mkdir(parents=True, exist_ok=True)
    digits = str(samples / "torch" / "train_digits.py")
    config = _dump_config(folder / "torch compiled")
    commands["torch compiled"] = [
        [*run, "--torch-backend", "msdump", "--config", config, digits, "--steps", "2", "--model", "transformer"]
    ]
    config = _dump_config(folder / "torch eager")
    eager = [*run, "--torch-eager", "--config"]
    commands["torch eager"] = [[*eager, config, str(_PROGRAMS / "eager.py")]]
    config = _dump_config(folder / "torch eager statistics", "statistic")
    commands["torch eager statistics"] = [[*eager, config, str(_PROGRAMS / "eager.py")]]
    (folder / "acl onnx" / "output").mkdir(exist_ok=True)
    commands["acl onnx"] = [
        [str(acl / "make_models.py")],
        *([str(acl / "infer.py"), "digits.onnx", str(acl / f"{name}.json")] for name in ("dump_all", "dump_stats")),
        [*run, str(acl / "infer_pyacl.py"), "digits.onnx", str(acl / "dump_layers.json")],
    ]
    commands["torchair eager"] = [[*run, str(samples / "torch" / "train_digits_torchair.py"), "--steps", "2"]]
    commands["torchair debug save"] = [[*run, str(samples / "torch" / "debug_save.py")]]
    commands["torchair graph mode"] = [[*run, str(_PROGRAMS / "graph_mode.py")]]
    for name in ("mix", "tensor", "L1", "save"):
        commands[f"msprobe {name}"] = [
            ["-c", _PROBE.format(probe=str(probe), name=name)],
            [*run, "--as", "msprobe", str(probe / "script.py"), "config.json", "WAY"],
        ]
    return commands


_PROBE = """
import json, sys
sys.path.insert(0, {probe!r})
from cases import CASES
way, config = CASES[{name!r}]
json.dump({{**config, "dump_path": "dump"}}, open("config.json", "w"))
open("way", "w").write(way)
"""


def _run(root: Path, folder: Path, commands: list[list[str]]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MINDSPORE_", "MSDUMP_"))}
    environment |= {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    folder.mkdir(exist_ok=True, parents=True)
    environment["STORE"] = str(folder / "store")
    for command in commands:
        words = [(folder / "way").read_text() if word == "WAY" else word for word in command]
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200
        )
        if done.returncode:
            raise SystemExit(f"{folder.name}: {words} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")


def _masked(text: bytes, folder: Path, root: Path) -> bytes:
    text = text.replace(str(folder).encode(), b"<folder>").replace(str(root).encode(), b"<root>")
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


def _without_time(content: bytes) -> bytes:
    """A file of CANN: the length of its header, the header, which has the time, and the bytes of tensors."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = DumpData.FromString(content[8:end])
    header.dump_time = 0
    return header.SerializeToString(deterministic=True) + content[end:]


def digests(folder: Path, root: Path) -> dict[str, str]:
    """Of every file below `folder`, by its name without stamps; files of one name are told apart by their order.

    Graphs in protobuf hold paths with their lengths: those of two trees are equal where their roots are equally long.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.suffix != ".log"
    ):
        content = path.read_bytes()
        if path.suffix in _TEXT:
            content = _masked(content, folder, root)
        elif path.suffix == ".pb":
            content = content.replace(str(root).encode(), b"<root>")
        elif _ACL.search(path.name):
            content = _without_time(content)
        name = _masked(path.relative_to(folder).as_posix().encode(), folder, root).decode()
        found.setdefault(name, []).append(hashlib.sha256(content).hexdigest()[:16])
    return {name: " ".join(sorted(each)) for name, each in sorted(found.items())}


def main() -> None:
    """Run every program, or those whose names hold `--only`, and write the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, help="a folder in which the dumps stay")
    args = parser.parse_args()
    root = args.root.resolve()
    with tempfile.TemporaryDirectory() as text:
        folder = (args.keep or Path(text)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        result = {}
        for name, commands in programs(root, folder).items():
            if args.only in name:
                print(name, flush=True)
                _run(root, folder / name, commands)
                result[name] = digests(folder / name, root)
        args.out.write_text(json.dumps(result, indent=1, sort_keys=True), encoding="utf-8")


if __name__ == "__main__":
    main()
