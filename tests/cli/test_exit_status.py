"""The table of exit statuses: it is what commands do, what they say of themselves, and what the page shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.exit_status import (
    BY_COMMAND,
    FAILED,
    FINE,
    FOUND,
    INCOMPLETE,
    MEANINGS,
    NOTHING,
    REFUSED,
    statuses,
)
from msdump.cli.main import COMMANDS, main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exit-status.md"
OP = "0.0.1700000000000000"
FINITE, NOT_FINITE = np.ones(4, np.float32), np.array([1, np.nan, 1, 1], np.float32)


def markdown_tables() -> str:
    """What docs/exit-status.md holds."""
    lines = ["| exit status | meaning |", "|---|---|"]
    lines += [f"| {status} | {text} |" for status, text in MEANINGS.items()]
    lines += ["", "| command | exit statuses |", "|---|---|"]
    for command, own in BY_COMMAND.items():
        texts = "; ".join(f"**{status}** {text}" for status, text in sorted(own.items()))
        lines.append(f"| `msdump {command}` | {texts} |")
    return "\n".join(lines) + "\n"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small dumps: whole, not finite, damaged, and without a tensor; and files to give."""
    monkeypatch.chdir(tmp_path)
    for variable in ("MINDSPORE_DUMP_CONFIG", "MSDUMP_UPLOAD", "RANK_ID"):
        monkeypatch.delenv(variable, raising=False)
    for name, array in (("whole", FINITE), ("bad", NOT_FINITE), ("damaged", FINITE)):
        folder = tmp_path / name / "rank_0" / "Net" / "0" / "0"
        folder.mkdir(parents=True)
        for side in ("input", "output"):
            np.save(folder / f"Neg.Neg-op0.{OP}.{side}.0.DefaultFormat.npy", FINITE if side == "input" else array)
    cut = tmp_path / "damaged/rank_0/Net/0/0" / f"Neg.Neg-op1.{OP}.output.0.DefaultFormat.npy"
    np.save(cut, FINITE)
    cut.write_bytes(cut.read_bytes()[:-4])
    (tmp_path / "empty").mkdir()
    common = {
        "dump_mode": 0, "path": str(tmp_path / "out"), "net_name": "Net", "iteration": "all", "input_output": 0,
        "kernels": [], "support_device": [0],
    }  # fmt: skip
    for name, changes in (("fine", {}), ("wrong", {"net_name": ""}), ("none", {"dump_mode": 1})):
        content = {
            "common_dump_settings": {**common, **changes},
            "e2e_dump_settings": {"enable": True, "trans_flag": True},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    (tmp_path / "fails.py").write_text("raise KeyError('x')\n")
    (tmp_path / "ends.py").write_text("pass\n")
    (tmp_path / "net.onnx").write_bytes(b"no model")
    return tmp_path


def rows(text: str) -> list[tuple[str, int]]:
    """Lines of a command and the status that it ends with."""
    return [(line.rpartition("  ")[0].strip(), int(line.rpartition("  ")[2])) for line in text.strip().splitlines()]


IN_PROCESS = rows(f"""
    schema acl                                  {FINE}
    completion bash                             {FINE}
    native --remove                             {NOTHING if find_spec("torch") else REFUSED}
    completion                                  {REFUSED}
    plan fine.json                              {FINE}
    plan wrong.json                             {REFUSED}
    plan none.json                              {NOTHING}
    plan fine.json --graph none.pb              {REFUSED}
    init --answers look,mindspore,0,any,tensor  {FINE}
    init --answers look                         {REFUSED}
    ls whole                                    {FINE}
    ls empty                                    {NOTHING}
    ls nowhere                                  {REFUSED}
    ls damaged                                  {INCOMPLETE}
    show whole Neg-op0                          {FINE}
    show whole Neg-op7                          {NOTHING}
    show nowhere Neg-op0                        {REFUSED}
    show damaged Neg-op0                        {FINE}
    where whole train.py:1                      {NOTHING}
    where nowhere train.py:1                    {REFUSED}
    report whole -o r.html                      {FINE}
    report empty -o r.html                      {NOTHING}
    report nowhere -o r.html                    {REFUSED}
    report damaged -o r.html                    {INCOMPLETE}
    view nowhere                                {REFUSED}
    nan whole                                   {FINE}
    nan bad                                     {FOUND}
    nan empty                                   {NOTHING}
    nan whole --iteration 7                     {NOTHING}
    nan nowhere                                 {REFUSED}
    nan damaged                                 {INCOMPLETE}
    compare whole whole                         {FINE}
    compare bad whole                           {FOUND}
    compare empty whole                         {NOTHING}
    compare nowhere whole                       {REFUSED}
    compare damaged whole                       {INCOMPLETE}
    plot whole                                  {FINE}
    plot empty                                  {NOTHING}
    plot whole --y l2nrm                        {REFUSED}
    plot damaged                                {INCOMPLETE}
    stat whole                                  {FINE}
    stat empty                                  {NOTHING}
    stat whole --op-type Add                    {NOTHING}
    stat nowhere                                {REFUSED}
    stat damaged                                {INCOMPLETE}
    replay whole Neg-op7                        {NOTHING}
    replay whole Neg-op0                        {REFUSED}
    repro whole Neg-op7                         {NOTHING}
    repro nowhere Neg-op0                       {REFUSED}
    zoom whole Neg-op7                          {NOTHING}
    zoom nowhere Neg-op0                        {REFUSED}
    ranks empty                                 {NOTHING}
    ranks nowhere                               {REFUSED}
    query nowhere                               {REFUSED}
    pack whole                                  {FINE}
    pack empty                                  {NOTHING}
    pack nowhere                                {REFUSED}
    unpack whole                                {NOTHING}
    recover whole                               {NOTHING}
    upload nowhere memory://job                 {REFUSED}
    recorder list whole                         {NOTHING}
    recorder list nowhere                       {REFUSED}
    trigger whole                               {NOTHING}
    convert empty -o npy                        {NOTHING}
    convert nowhere -o npy                      {REFUSED}
    export whole --to sqlite -o x.sqlite        {FINE}
    export empty --to sqlite -o x.sqlite        {NOTHING}
    export nowhere --to sqlite -o x.sqlite      {REFUSED}
    export damaged --to sqlite -o x.sqlite      {INCOMPLETE}
    mcp nowhere                                 {REFUSED}
    skill                                       {FINE}
    docs exit status                            {FINE}
    docs zzzz                                   {NOTHING}
    docs                                        {REFUSED}
    doctor nowhere                              {REFUSED}
    acl run net.onnx                            {REFUSED}
    run nowhere.py                              {REFUSED}
    demo --steps 0                              {REFUSED}
""")
RUNS = rows(f"""
    run ends.py                                 {FINE}
    run fails.py                                {FAILED}
    run --config fine.json ends.py              {NOTHING}
    plan fine.json --dry-run fails.py           {FAILED}
""")


@pytest.mark.parametrize(("line", "status"), IN_PROCESS, ids=[line for line, _ in IN_PROCESS])
def test_a_command_ends_as_its_table_says(line: str, status: int, places: Path) -> None:
    assert main(line.split()) == status
    assert status in statuses(line.split()[0])


@pytest.mark.parametrize(("line", "status"), RUNS, ids=[line for line, _ in RUNS])
def test_what_runs_a_script_ends_as_its_table_says(line: str, status: int, places: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "msdump", *line.split()], capture_output=True, env=os.environ, check=False
    )
    assert done.returncode == status, done.stderr.decode()
    assert status in statuses(line.split()[0])


def test_every_command_has_statuses_and_is_tried() -> None:
    assert set(BY_COMMAND) == set(COMMANDS) - {"msaccucmp"}
    assert {line.split()[0] for line, _ in IN_PROCESS} == set(BY_COMMAND)
    assert all(set(statuses(command)) <= set(MEANINGS) for command in BY_COMMAND)


@pytest.mark.parametrize("command", BY_COMMAND)
def test_help_ends_with_the_table(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text, _, table = capsys.readouterr().out.rpartition("exit status:\n")
    words = " ".join(table.split())
    for status, meaning in statuses(command).items():
        assert f"{status} {' '.join(meaning.split())}" in words
    assert "exit status:\n" not in text


def test_the_page_shows_the_tables() -> None:
    assert markdown_tables() in PAGE.read_text(encoding="utf-8"), markdown_tables()
