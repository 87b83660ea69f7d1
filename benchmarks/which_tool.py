"""What each tool prints about the two planted faults of docs/which-tool.md: `python -m benchmarks.which_tool --write`.

The scripts are those of the page. Each tool runs them in a new folder; lines that name what it found go to the page,
between markers. A tool whose environment is not there (`--peers FOLDER`, as for `python -m benchmarks`) keeps its text.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import peers

# What a tool says: from a folder with the scripts, the name of one, and an interpreter.
Tell = Callable[[Path, str, Path], str]
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "which-tool.md"
SCRIPTS = ("counts.py", "pairs.py")
_FILE = re.compile(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PRINTED = re.compile(r"(<!-- printed: (\w+) (\S+) -->\n).*?(<!-- printed: end -->)", re.DOTALL)

_ANOMALY = "import runpy, torch\ntorch.autograd.set_detect_anomaly(True)\nrunpy.run_path({script!r})\n"
_DEBUG = """import runpy
from torch.utils._debug_mode import DebugMode
with DebugMode(record_stack_trace=True) as mode, mode.log_tensor_hashes(hash_inputs=True):
    runpy.run_path({script!r})
print(mode.debug_string(show_stack_trace=True))
"""
_EXPORT = """import runpy, numpy, torch
names = runpy.run_path("counts.py")
torch.manual_seed(0)
counts = torch.randint(0, 9, (16, 8)).float()
counts[3, 5] = -2
torch.onnx.export(names["Net"](), (counts,), "net.onnx", dynamo=False, input_names=["counts"])
numpy.save("counts.npy", counts.numpy())
"""
_FEED = 'import numpy\n\n\ndef load_data():\n    yield {"counts": numpy.load("counts.npy")}\n'
_PROBE = {"task": "statistics", "dump_path": "probe", "rank": [], "step": [], "level": "mix"}


def main() -> None:
    """Run the tools, print what they said, and write it to the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.which_tool", description=main.__doc__)
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="install the other tools there, and run them too")
    parser.add_argument("--write", action="store_true", help="put it into docs/which-tool.md")
    args = parser.parse_args()
    found = peers.install(args.peers.resolve()) if args.peers else {}
    texts = {
        (tool, script): text
        for tool, tell in TOOLS.items()
        for script in SCRIPTS
        if (python := found.get(tool) if tool in peers.REQUIREMENTS else Path(sys.executable))
        if (text := printed(tell, script, python))
    }
    for (tool, script), text in texts.items():
        print(f"== {tool}, {script}\n{text}")
    if args.write:
        PAGE.write_text(made(PAGE.read_text(encoding="utf-8"), texts), encoding="utf-8")


def printed(tell: Tell, script: str, python: Path) -> str:
    """What a tool says about a script of the page; empty where it can say nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in _FILE.findall(PAGE.read_text(encoding="utf-8")):
            (folder / file).write_text(text, encoding="utf-8")
        return tell(folder, script, python)


def made(page: str, texts: Mapping[tuple[str, str], str]) -> str:
    """The page with what was printed between its markers."""

    def block(match: re.Match[str]) -> str:
        text = texts.get((match[2], match[3]))
        return match[0] if text is None else f"{match[1]}\n```text\n{text}\n```\n\n{match[4]}"

    return _PRINTED.sub(block, page)


def _anomaly(folder: Path, script: str, python: Path) -> str:
    said = _run(folder, [python, "-c", _ANOMALY.format(script=script)]).splitlines()
    lines = [match[0] for line in said if (match := re.search(r"Error detected in \w+|RuntimeError: .*", line))]
    at = next(index for index, line in enumerate(said) if "Error detected" in line)
    end = next(index for index, line in enumerate(said) if "Triggered internally" in line)
    # The traceback ends in files of PyTorch, as often as not; the user's lines are what counts.
    own = [f"{said[index]}\n{said[index + 1]}" for index in range(at, end) if f'File "{script}"' in said[index]]
    return "\n".join([lines[0], *own, *lines[1:]])


def _debug_mode(folder: Path, script: str, python: Path) -> str:
    said = _run(folder, [python, "-c", _DEBUG.format(script=script)]).splitlines()
    at = next(index for index, line in enumerate(said) if re.search(r"'hash': .*\b(nan|inf)\b", line))
    line = next(line for line in reversed(said[:at]) if "# File: " in line)
    return f"line {at + 1} of {len(said)}:\n{line.strip()}\n{said[at].strip()}"


def _msprobe(folder: Path, script: str, python: Path) -> str:
    text, model = (folder / script).read_text(), "model" if script == "counts.py" else "encoder"
    begin = 'from msprobe.pytorch import PrecisionDebugger\n\ndebugger = PrecisionDebugger("probe.json")\n\n'
    text = text.replace("    loss = ", f"    debugger.start(model={model})\n    loss = ", 1)
    text = text.replace("    optimizer.step()", "    debugger.stop()\n    debugger.step()\n    optimizer.step()", 1)
    (folder / script).write_text(begin + text)
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    (folder / "probe.json").write_text(json.dumps({**_PROBE, "statistics": section}))
    _run(folder, [python, script])
    # Scripts of an environment name its interpreter, which may have moved.
    code = "import sys; from msprobe.msprobe import main; sys.argv[0] = 'msprobe'; sys.exit(main())"
    (folder / "found").mkdir()
    _run(folder, [python, "-c", code, "overflow_check", "-i", "probe/step2", "-o", "found"])
    (file,) = (folder / "found").glob("*.json")
    lines = []
    for entry in json.loads(file.read_text())["rank_0"]:
        lines.append(f'"op_name": "{entry["op_name"]}"')
        lines += [
            text.replace(f"{folder}{os.sep}", "").replace(", \n ", ": ")
            for text in entry.get("stack_info") or []
            if str(folder) in text
        ][:1]
    return "\n".join(lines)


def _polygraphy(folder: Path, script: str, python: Path) -> str:
    if script != "counts.py":
        return ""  # an ONNX file has no backward pass
    _run(folder, [sys.executable, "-c", _EXPORT])
    (folder / "feed.py").write_text(_FEED)
    command = ["run", "net.onnx", "--onnxrt", "--onnx-outputs", "*", "--validate", "--data-loader-script", "feed.py"]
    said = _run(folder, [python, "-c", "from polygraphy.tools import main; main()", *command])
    return "\n".join(line for line in said.splitlines() if re.match(r"\[E\].*(Detected|Errors)|.*PASSED", line))


def _msdump(folder: Path, script: str, python: Path) -> str:
    said = _run(folder, [python, "-m", "msdump", "run", script])
    return said[said.index("$ msdump nan") :].split("  infects", 1)[0].rstrip()


TOOLS: dict[str, Tell] = {
    "anomaly": _anomaly,
    "debugmode": _debug_mode,
    "msprobe": _msprobe,
    "polygraphy": _polygraphy,
    "msdump": _msdump,
}


def _run(folder: Path, command: list[str | Path]) -> str:
    """All that a command printed. Tools end with 1 where they found something."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()
