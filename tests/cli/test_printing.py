"""What commands print: no text steers the terminal, and none of it must be read."""

from __future__ import annotations

import ast
import io
import json
import logging
import math
import os
import re
import shlex
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.cli.main import main
from msdump.cli.printing import (
    _BLOCKS,
    BINS,
    BYTES,
    FILES,
    LINE_ENDS,
    exponent_bars,
    is_terminal,
    log_printable,
    print_table,
    printable,
    progress_bar,
    put,
    rate_text,
    say_next,
    sparkline,
)  # fmt: skip
from msdump.statistics.exponents import exponent_histogram
from tests.analysis.small_dump import Array, write_dump
from tests.package import PACKAGE

ROOT = Path(__file__).parents[2]
CLI = PACKAGE / "cli"
# Function -> files below cli/ that may call it; the other places ask printing.py.
DIRECT = {
    "print": {"printing.py", "launch.py"},  # launch: the words of the user's own sys.exit
    "Console": {"printing.py", "report_text.py"},  # the others: progress bars, without names
}
HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\r"


@pytest.fixture
def tmp_path(plain_path: Path) -> Path:
    """msaccucmp takes no other paths."""
    return plain_path


@given(st.text(st.characters()))
def test_only_what_a_terminal_shows_is_left(text: str) -> None:
    shown = printable(text)
    assert all(letter.isprintable() or unicodedata.category(letter) == "Zs" for letter in shown)
    assert printable(shown) == shown
    if text.isprintable() and ":/" not in text:  # an address may hold a password
        assert shown == text
    assert printable(f"{text}\n{text}", LINE_ENDS).count("\n") == 2 * text.count("\n") + 1


def test_bytes_and_signs_are_told_apart() -> None:
    assert printable(os.fsdecode(b"a\xff\x1b\n\xe4\xb8\xad")) == "a\\xff\\x1b\\n\u4e2d"
    assert printable("\u202e\u3000\ud800") == "\\u202e\u3000\\ud800"


COMMAND = st.sampled_from(
    ("::", ":", "##", "#", "[", "vso[", "teamcity[", " ", "\t", "\u3000", "\xa0", "\n", "\r", "set-output", "x")
)


def commands_in(text: str) -> list[str]:
    """Lines that GitHub's runner or Azure's agent would act on, and TeamCity's."""
    lines = text.replace("\r", "\n").split("\n")
    return [
        line
        for line in lines
        if line.strip().startswith("::") or any(f"##{name}[" in line for name in ("", "vso", "teamcity"))
    ]


@example("##x[")
@given(st.lists(COMMAND).map("".join))
def test_no_line_is_a_command_to_a_ci_service(text: str) -> None:
    stream = io.StringIO()
    put(text, stream)
    shown = stream.getvalue()
    assert not commands_in(shown)
    assert shown.replace("\\x3a", ":").replace("\\x23", "#") == printable(text, LINE_ENDS) + "\n"
    if not commands_in(printable(text, LINE_ENDS)):
        assert shown == printable(text, LINE_ENDS) + "\n"


def test_what_stands_inside_of_a_line_is_left() -> None:
    stream = io.StringIO()
    put("aten::add  a::b\n## title\nx [##] # [1]", stream)
    assert stream.getvalue() == "aten::add  a::b\n## title\nx [##] # [1]\n"


@pytest.mark.parametrize("file", sorted(CLI.glob("*.py")), ids=lambda file: file.name)
def test_every_command_prints_through_one_place(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DIRECT:
            assert file.name in DIRECT[node.func.id], f"{file.name}:{node.lineno}: {node.func.id}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_tables_show_no_cell_as_it_is(stream: type[io.StringIO]) -> None:
    target = stream()
    print_table(("name", "number"), [(HOSTILE, "1"), ("[bold red]x", "2")], target, numbers=(1,))
    text = target.getvalue()
    assert "\x9b" not in text and "\x07" not in text and "\u202e" not in text and "\x1b]0" not in text
    assert "[bold red]x" in text


def test_what_is_logged_is_printable(caplog: pytest.LogCaptureFixture) -> None:
    log_printable()
    logging.getLogger("msdump").warning("%s: %d", HOSTILE, 3)
    (record,) = caplog.records
    assert record.getMessage() == f"{printable(HOSTILE)}: 3"
    logging.getLogger("msdump").warning("::set-output\n  ::add-path::x")
    assert caplog.messages[1] == "\\x3a:set-output\n  \\x3a:add-path::x"


def test_streams_that_are_closed_or_narrow() -> None:
    put("lost", None)
    assert not is_terminal(None)
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    put("\u4e2d \xe9", narrow, flush=True)
    assert narrow.buffer.getvalue() == b"\\u4e2d \\xe9\n"  # type: ignore[attr-defined]
    narrow.close()
    assert not is_terminal(narrow)


# -- a dump whose names are hostile --------------------------------------------------------------------------------


@pytest.fixture
def hostile_dump(tmp_path: Path) -> Path:
    """Names with escape sequences, with bytes that are not UTF-8, and with formulas."""
    values = np.arange(1, 5, dtype=np.float32)
    root = write_dump(
        tmp_path / "dump", [("Default/Add-op1", {("input", 0): values, ("output", 0): values * np.float32("inf")})]
    )
    data = root / "rank_0/Net/0/0"
    (path,) = data.glob("*.output.0.*")
    for name in (os.fsencode("Add.x\x1b[2J.") + b"\xff", "Add.=1+1|\u202e".encode(), b"=cmd.Add-op7"):
        for io_name in (b"input", b"output"):
            target = name + b".0.0.1700000000000009." + io_name + b".0.DefaultFormat.npy"
            (data / os.fsdecode(target)).write_bytes(path.read_bytes())
    order = root / "rank_0/execution_order/ms_execution_order_graph_0.csv"
    order.write_text(order.read_text() + "Default/\x1b[31mred\x07-op3\n")
    ir = root / "rank_0/graphs/ms_output_trace_code_graph_0.ir"
    ir.parent.mkdir()
    ir.write_text(
        "# IR entry: @g\n"
        "  %1(a) = Add(%para1_x\x1bc)\n"
        "      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)\n"
        "      # Fullname with scope: (Default/Add-op1)\n"
        "      # In file a\x1b]0;x\x07.py:3/x = a\x9b31m\x1b[2J/\n"
        "  %2(b) = ReLU(%1)\n"
        "      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)\n"
        "      # Fullname with scope: (::set-output name=x::ReLU-op2)\n"
        "      # In file ::add-mask::x.py:4/::add-path::b ##[command]c ##vso[task.setvariable]d/\n"
        "  Return(%1)\n"
    )
    return root


COMMANDS = {
    "show": (["show", "{dump}", "Add-op1"], {0}),
    "show_bytes": (["show", "{dump}", "x*"], {0, 3}),
    "where": (["where", "{dump}", "x = a"], {0}),
    "where_command": (["where", "{dump}", "::add-path::b"], {0}),
    "where_not": (["where", "{dump}", "y\x1b[2J = b"], {3}),
    "nan": (["nan", "{dump}", "--all"], {1}),
    "stat": (["stat", "{dump}"], {0}),
    "compare": (["compare", "{dump}", "{dump}", "--all"], {0}),
    "convert": (["convert", "{dump}", "-o", "{out}", "-t", "bin"], {0, 3}),
    "replay": (["replay", "{dump}", "Add-op1"], {2}),
    "plan": (["plan", "{config}"], {0, 3}),
    "plan_of_nothing": (["plan", "{dump}\x1b[2J.json"], {2}),
    "msaccucmp": (["msaccucmp", "convert", "-d", "{dump}/rank_0/Net/0/0", "-out", "{out}"], range(30)),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_passes_a_name_on_as_it_is(
    command: str, hostile_dump: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    arguments, statuses = COMMANDS[command]
    config = json.loads((ROOT / "tests/golden/lenet/dump.json").read_text())
    config["common_dump_settings"] |= {"dump_mode": 1, "kernels": [HOSTILE] * 2, HOSTILE: 1, "path": "/x\x1b[2J"}
    (tmp_path / "x.json").write_text(json.dumps(config | {HOSTILE: {}}))
    places = {"dump": hostile_dump, "out": tmp_path / "out", "config": tmp_path / "x.json"}
    status = main([part.format(**places) for part in arguments])
    out, err = capfdbinary.readouterr()
    text = (out + err).decode()  # UTF-8 to the last byte
    assert status in statuses, text
    assert "Traceback" not in text
    assert printable(text, LINE_ENDS) == text
    assert not commands_in(text)


def test_results_in_files_are_whole(hostile_dump: Path, tmp_path: Path) -> None:
    csv, table = tmp_path / "x.csv", tmp_path / "x.json"
    assert (
        main(["compare", str(hostile_dump), str(hostile_dump), "--csv", str(csv), "--json", str(table), "--all"]) == 0
    )
    lines = csv.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 9 and any("\\udcff" in line for line in lines)
    assert not [cell for line in lines for cell in line.split(",") if cell.startswith(("=", "@", "+"))]
    assert any(cell.startswith("'=1+1|") for line in lines for cell in line.split(","))
    assert len(json.loads(table.read_text())["steps"][0]["operators"]) == 5


# -- streams without a reader -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("needs_mindspore")
@pytest.mark.parametrize("redirection", ["2>&-", "1>&- 2>&-", "0<&- 2>&-", "2>&1 >/dev/null | true"])
def test_a_closed_stream_does_not_change_the_result(redirection: str, tmp_path: Path) -> None:
    """The report of a complete dump has nowhere to go; the dump is complete all the same."""
    (tmp_path / "script.py").write_text(
        "import os, sys\nimport mindspore as ms\nfrom mindspore import nn\n"
        "ms.set_context(mode=ms.GRAPH_MODE)\n"
        "nn.ReLU()(ms.Tensor([1.0, -1.0]))\n"
    )
    config = json.loads((ROOT / "tests/golden/lenet/dump.json").read_text())
    config["common_dump_settings"] |= {"path": str(tmp_path / "dump"), "iteration": "all", "kernels": []}
    (tmp_path / "dump.json").write_text(json.dumps(config))
    line = f"{sys.executable} -m msdump run --config dump.json script.py {redirection}; echo ${{PIPESTATUS[0]}} >status"
    subprocess.run(["bash", "-c", line], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    assert (tmp_path / "status").read_text() == "0\n"
    assert list((tmp_path / "dump").rglob("ReLU*.npy"))


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "import os\nfrom msdump.cli.main import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "fd = os.open('x', os.O_CREAT)\nopen('fd', 'w').write(str(fd))\n"
    )
    line = f'{sys.executable} -c "$0" 0<&- 1>&- 2>&-'
    subprocess.run(["bash", "-c", line, code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    assert int((tmp_path / "fd").read_text()) > 2


def test_no_command_prints_past_it() -> None:
    folder = PACKAGE / "cli"
    # launch.py prints what the user's own script ended with.
    files = [file for file in folder.glob("*.py") if file.name not in ("printing.py", "launch.py")]
    assert [file.name for file in files if re.search(r"(?<![\w.])print\(", file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("done", "seconds", "unit", "text"),
    [(0, 1.0, BYTES, ""), (5, 0.0, BYTES, ""), (3 << 30, 2.0, BYTES, "1.5 GiB/s"), (7, 2.0, FILES, "3.5 files/s")],
)
def test_the_rate_of_a_progress_bar(done: int, seconds: float, unit: str, text: str) -> None:
    assert rate_text(done, seconds, unit) == text


def test_a_progress_bar_shows_rate_and_remaining_time_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("[red]measure", stream) as advance:
        for done in (1, 2, 3):
            time.sleep(0.01)
            advance(done << 28, 2 << 30)
    text = stream.getvalue()
    assert "[red]measure" in text and "38%" in text and "iB/s" in text and "0:00:0" in text


@given(
    st.lists(st.tuples(st.text(st.characters()), st.text(st.characters()), st.just("100%s")), min_size=1, max_size=5)
)
def test_a_table_writes_out_what_each_cell_alone_would(rows: list[tuple[str, str, str]]) -> None:
    stream = io.StringIO()
    print_table(["a", "b", "c"], rows, stream, named=(0, 1, 2), wraps=(0, 1))
    printed = "".join(stream.getvalue().split())
    if all(len(printable(cell)) < 10 for row in rows for cell in row):
        # `put` looks at the whole once more, as it does with any text.
        text = "".join("".join(map(printable, row)) for row in rows)
        assert printed == "".join(printable(f"abc{text}").split())
    assert printable(printed, LINE_ENDS) == printed


@given(
    st.integers(1, 4).flatmap(
        lambda count: st.lists(st.tuples(*[st.text("ab c\x1b", max_size=5)] * count), max_size=4)
    ),
    st.sets(st.integers(0, 3)),
)
def test_cells_of_a_table_stand_below_each_other(rows: list[tuple[str, ...]], numbers: set[int]) -> None:
    titles = tuple(f"t{number}" for number in range(len(rows[0]) if rows else 2))
    lines = [[printable(cell) for cell in line] for line in [titles, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    expected = [
        "  ".join(
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    stream = io.StringIO()
    print_table(titles, rows, stream, tuple(numbers), named=range(4))
    assert stream.getvalue() == "\n".join(expected) + "\n"


def test_a_table_shows_its_first_rows_and_how_many_more_there_are() -> None:
    stream = io.StringIO()
    print_table(("operator", "error"), [(f"op{number}", "1") for number in range(30)], stream, most=20)
    lines = stream.getvalue().splitlines()
    assert lines[20:] == ["op19      1", "10 more (--all)"]


def test_a_verdict_has_its_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    print_table(("verdict", "operator"), [("differs", "a"), ("agrees", "b"), ("strange", "c")], stream)
    assert stream.getvalue().splitlines()[1:] == [
        "\x1b[1;31mdiffers\x1b[0m  a", "\x1b[32magrees\x1b[0m   b", "strange  c",
    ]  # fmt: skip
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    print_table(("verdict", "operator"), [("differs", "a")], plain)
    assert "31m" not in plain.getvalue()


def test_sentences_are_wrapped_for_a_terminal_and_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    sentence = "first NaN: " + "Default/net/MatMul-op0 " * 10
    pipe, terminal = io.StringIO(), Terminal()
    put(sentence, pipe)
    put(sentence, terminal)
    assert pipe.getvalue() == f"{sentence}\n"
    assert max(map(len, terminal.getvalue().splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "40")
    told = io.StringIO()
    put(sentence, told)
    assert max(map(len, told.getvalue().splitlines())) <= 40


def test_next_commands_can_be_copied_from_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    line = shlex.join(["msdump", "show", "my dump", "Default/x'y-op1", "--rank", "0", "--iteration", "3"])
    say_next([(line, "its tensors"), ("", "nothing"), ("msdump ls x", "it")], stream)
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= 40 and text.startswith("\nnext:\n  # its tensors\n  msdump show")
    assert text.endswith("  msdump ls x  # it\n")
    command = text.split("# its tensors\n")[1].split("  msdump ls")[0]
    assert shlex.split(command.replace("\\\n", " ")) == shlex.split(line)


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=1, max_side=40), elements=st.floats(width=32)))
def test_every_exponent_has_its_place(array: Array) -> None:
    histogram = exponent_histogram(array, "float32")
    assert histogram is not None
    text = exponent_bars(histogram)
    if not histogram.count:
        assert text == ""
        return
    first, _, rest = text.partition(" ")
    bars, _, last = rest.rpartition(" ")
    assert len(bars) <= BINS and set(bars) <= {*_BLOCKS, " "} and _BLOCKS[-1] in bars
    low, high = (int(end.removeprefix("2^")) for end in (first, last))
    magnitudes = np.abs(array[np.isfinite(array) & (array != 0)]).astype(np.float64)
    assert magnitudes.max() < 2.0**high
    width = (high - low) // len(bars)
    # What is too small for a normal number counts as one exponent, the first.
    places = np.maximum(np.floor(np.log2(magnitudes)).astype(int), low) - low
    assert {place // width for place in places} == {place for place, bar in enumerate(bars) if bar != " "}


@given(st.lists(st.none() | st.floats()))
def test_a_sparkline_has_a_bar_for_each(values: list[float | None]) -> None:
    text = sparkline(values)
    assert len(text) == len(values)
    heights = {}
    for value, bar in zip(values, text, strict=True):
        assert (bar == " ") == (value is None) and (bar == "!") == (value is not None and not math.isfinite(value))
        if bar in _BLOCKS:
            heights[value] = _BLOCKS.index(bar)
    assert [heights[value] for value in sorted(heights)] == sorted(heights.values())


@pytest.mark.parametrize(
    ("values", "text"), [([], ""), ([1, 1], "▅▅"), ([0, 6, 8], "▁▇█"), ([-1e308, 1e308, math.nan, None], "▁█! ")]
)
def test_sparklines(values: list[float | None], text: str) -> None:
    assert sparkline(values) == text
