"""Commands on files of other tools: the tensor is named, what no file tells is left out, and names do no harm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.exit_status import INCOMPLETE
from msdump.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden" / "other_tools"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """Two folders of three tensors, of which the second differs and the third holds NaN in the first folder."""
    for name, factor in (("mine", 2), ("golden", 1)):
        for step in (0, 1):
            (tmp_path / name / f"step_{step}").mkdir(parents=True)
            for index in range(3):
                array = np.arange(1, 7, dtype=np.float32) * (factor if index else 1)
                array[0] = np.nan if (name, step, index) == ("mine", 1, 2) else array[0]
                np.save(tmp_path / name / f"step_{step}" / f"layer.{index}.npy", array)
    return str(tmp_path / "mine"), str(tmp_path / "golden")


def test_each_command_answers(folders: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = folders
    answers = {}
    for words in (
        ("ls", mine), ("nan", mine), ("stat", mine), ("show", mine, "layer.2"), ("compare", mine, golden),
        ("plot", mine), ("report", mine, golden, "-o", f"{mine}.html"), ("replay", mine, "layer.2"),
    ):  # fmt: skip
        status = main(list(words))
        answers[words[0]] = status, "".join(capsys.readouterr())
    assert {name: status for name, (status, _) in answers.items()} == {
        "ls": 0, "nan": 1, "stat": 0, "show": 0, "compare": 1, "plot": 0, "report": 0, "replay": 2,
    }  # fmt: skip
    assert "layer.2, iteration 1" in answers["nan"][1]
    assert "first difference: layer.1, iteration 0" in answers["compare"][1]
    assert "a tensor with a name alone" in answers["replay"][1]
    for name, (_, text) in answers.items():
        assert "()" not in text, name
        assert name == "replay" or "msdump replay" not in text


def test_the_same_in_chinese(
    folders: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSDUMP_LANGUAGE", "zh")
    main(["nan", folders[0]])
    assert "layer.2，" in capsys.readouterr().out


def test_names_of_strangers_are_made_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["\ud800x", "\x1b[31mred", "a\nb", "<script>", "", "nul\0", "../../etc/passwd", "y@0.0.0", "/"]
    header = {
        name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * at, 4 * at + 4]} for at, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + np.full(len(names), np.nan, np.float32).tobytes()
    (tmp_path / "e.safetensors").write_bytes(content)
    for words in (["ls"], ["nan", "--all"], ["stat"], ["plot"]):
        main([*words, str(tmp_path)])
    main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")])
    output = "".join(capsys.readouterr())
    assert "\x1b" not in output
    assert "\0" not in output
    assert "<script>" in output  # as text of a terminal
    assert '"<script>"' not in (tmp_path / "page.html").read_text(errors="surrogatepass")


def test_a_damaged_file_is_named_and_the_rest_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "good.npy", np.ones(2))
    (tmp_path / "bad.safetensors").write_bytes(b"\xff" * 20)
    status = main(["ls", str(tmp_path)])
    out, err = capsys.readouterr()
    assert "1 operator, 1 tensor" in out
    assert "bad.safetensors: expected a header of safetensors" in err
    assert status == INCOMPLETE


def test_results_of_polygraphy_agree_with_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    folder = GOLDEN / "polygraphy"
    assert main(["compare", str(folder / "outputs.json"), str(folder / "folder")]) == 0
    assert "4 of 4 operators and parameters agree" in capsys.readouterr().out
