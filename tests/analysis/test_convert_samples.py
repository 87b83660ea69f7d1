"""Every sample through the original's command lines: names, bytes, JSON and exit codes of the original."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.main import main as msdump_main
from msdump.cli.msaccucmp import main

GOLDEN = Path(__file__).parent.parent / "golden"
SAMPLES, OUT, NAMES = GOLDEN / "msaccucmp/samples", GOLDEN / "msaccucmp/out", GOLDEN / "msaccucmp_names"
OVERFLOW_FILE = "Opdebug.Node_OpDebug.3.7.1700000000000010"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Paths of the tests may hold characters that the original refuses; relative ones do not."""
    for name in SAMPLES.iterdir():
        (tmp_path / name.name).symlink_to(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("sample", "options", "expected"),
    [
        ("main", [], OUT / "main"),
        ("main", ["-t", "bin"], OUT / "mainbin"),
        ("main", ["-t", "msnpy"], NAMES / "mainms"),
        ("v1", ["-v", "1"], OUT / "v1"),
        ("zoo_bool", [], OUT / "zoo_bool"),
        ("zoo_float", [], OUT / "zoo_float"),
        ("zoo_float16", ["--version", "2", "--type", "npy"], OUT / "zoo_float16"),
        ("longout", ["-t", "msnpy"], NAMES / "longout_msnpy"),
        (f"ovf_old/{OVERFLOW_FILE}", [], NAMES / "ovfc_old"),
    ],
)
def test_outputs_equal_those_of_the_original(at: Path, sample: str, options: list[str], expected: Path) -> None:
    assert main(["convert", "-d", sample, "-out", "out", *options]) == 0
    assert files(at / "out") == files(expected)


def test_format_conversion(at: Path) -> None:
    """The one tensor without a way to NCHW makes the code; the others are there."""
    assert main(["convert", "-d", "main", "-out", "out", "-f", "NCHW"]) == 22
    made = files(at / "out")
    line = made.pop("convert_failed_file_list.txt").decode()
    assert line == "main/Conv2D.net_conv1.3.7.1700000000000001,input:1\n"
    assert made == files(OUT / "fNCHW")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["-o", "0"], ["output.0.20x18"]),
        (["-i", "0"], ["input.0.1x5x2x3"]),
        (["-o", "0", "-s", "19,17"], ["output.0.19x17"]),
    ],
)
def test_one_tensor(at: Path, options: list[str], names: list[str]) -> None:
    assert main(["convert", "-d", "main", "-out", "out", "-f", "NCHW", *options]) == 0
    assert sorted(files(at / "out")) == [f"Conv2D.net_conv1.3.7.1700000000000001.{name}.npy" for name in names]


def test_hashed_names_are_restored(at: Path) -> None:
    """A mended defect: the names are the original's, and mapping.csv now tells what the digits stand for."""
    assert main(["convert", "-d", "mapdir", "-out", "out"]) == 0
    made = files(at / "out")
    mapping = made.pop("mapping.csv").decode()
    original = (SAMPLES / "mapdir/mapping.csv").read_text().split(",")[1].strip()
    assert mapping == f"13847561234567890123.output.0.npy,{original}.output.0.npy\n"
    assert made == files(OUT / "mapdir")


def test_too_long_names_become_digests(at: Path) -> None:
    (name,) = (SAMPLES / "longout").iterdir()
    assert main(["convert", "-d", "longout", "-out", "out"]) == 0
    made = files(at / "out")
    digest, original = made.pop("mapping.csv").decode().strip().split(",")
    assert re.fullmatch(r"[0-9a-f]{32}\.npy", digest)
    assert original == f"{name.name}.output.0.npy"
    # The original's own result was made of a name that just fits; the values are these.
    assert made == {digest: next((OUT / "longout").iterdir()).read_bytes()}


def test_bfloat16_is_read_without_another_package(at: Path) -> None:
    assert main(["convert", "-d", "zoo_bf16", "-out", "out"]) == 0
    (made,) = (at / "out").iterdir()
    assert np.load(made).dtype == np.float32
    assert main(["convert", "-d", "zoo_bf16", "-out", "raw", "-t", "bin"]) == 0
    (raw,) = (at / "raw").iterdir()
    assert raw.name.endswith(".output.0.2.bfloat16.ND.bin")
    assert (np.fromfile(raw, np.uint16).astype(np.uint32) << 16).tobytes() == np.load(made).tobytes()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-d", "bad_hdrlen"], 11),
        (["-d", "bad_trunc"], 11),  # the original: 0, a mended defect
        (["-d", "v1"], 11),
        (["-d", "main", "-v", "1"], 11),
        (["-d", "missing"], 3),
        (["-d", "missing,missing2"], 3),
        (["-d", "empty"], 6),
        (["-d", "folders"], 0),
        (["-d", "zero"], 11),
        (["-d", "main", "-o", "0"], 6),
        (["-d", "main", "-i", "0"], 6),
        (["-d", "main", "-s", "1,2"], 6),
        (["-d", "main", "-c", "main"], 6),
        (["-d", "main", "-f", "NO_SUCH"], 6),
        (["-d", "main", "-f", "NCHW", "-s", "4"], 6),
        (["-d", "main", "-f", "NCHW", "-s", "4,0"], 6),
        (["-d", "main", "-f", "NCHW", "-o", "0", "-i", "0"], 6),
        (["-d", "main", "-f", "NCHW", "-o", "0", "-s", "99,99"], 6),
        (["-d", "main", "-f", "NCHW", "-o", "5"], 12),
        (["-d", "main", "-out", "link"], 3),
        (["-d", "ovf_old", "-f", "ND"], 0),
    ],
)
def test_exit_codes(at: Path, arguments: list[str], code: int) -> None:
    (at / "empty").mkdir()
    (at / "folders/inner").mkdir(parents=True)
    (at / "zero").mkdir()
    (at / "zero/A.a.1.1.1700000000000005").touch()
    (at / "target").mkdir()
    (at / "link").symlink_to("target")
    assert main(["convert", *([] if "-out" in arguments else ["-out", "out"]), *arguments]) == code


@pytest.mark.parametrize("damage", ["size 8", "cut", "trailing"])
def test_damaged_files_fail(at: Path, damage: str) -> None:
    """A mended defect: the original says so in its log and ends with 0."""
    content = next((SAMPLES / "zoo_float").iterdir()).read_bytes()
    variants = {"size 8": content[:8], "cut": content[:-1], "trailing": content + b"\0"}
    (at / "A.a.1.1.1700000000000005").write_bytes(variants[damage])
    assert main(["convert", "-d", "A.a.1.1.1700000000000005", "-out", "out"]) == 11
    assert not (at / "out").exists()


def test_a_missing_file_of_a_list_is_skipped(at: Path) -> None:
    first, second = (str(next((at / name).iterdir())) for name in ("zoo_bool", "zoo_float"))
    relative = [str(Path(path).relative_to(at)) for path in (first, second)]
    assert main(["convert", "-d", f"{relative[0]},missing,{relative[1]}", "-out", "out"]) == 0
    assert len(files(at / "out")) == 2


def test_a_folder_goes_on_after_a_damaged_file(at: Path) -> None:
    mixed = at / "mixed"
    mixed.mkdir()
    for sample in ("bad_trunc", "zoo_bool", "bad_hdrlen"):
        (path,) = (SAMPLES / sample).iterdir()
        (mixed / path.name).write_bytes(path.read_bytes())
    assert main(["convert", "-d", "mixed", "-out", "out"]) == 11
    made = files(at / "out")
    listed = made.pop("convert_failed_file_list.txt").decode().splitlines()
    assert listed == ["mixed/A.hdr.1.1.1700000000000005", "mixed/A.trunc.1.1.1700000000000005"]
    assert made == files(OUT / "zoo_bool")


@pytest.mark.parametrize("arguments", [["-d", "a b"], ["-d", "main", "-v", "3"], ["-d", "main", "-t", "csv"], []])
def test_wrong_arguments_end_in_the_parser(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["convert", *arguments])
    assert leaving.value.code == 2
    assert capsys.readouterr().err


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 6
    assert " - [ERROR] expected a sub-command" in capsys.readouterr().out


def test_modes_are_private(at: Path) -> None:
    main(["convert", "-d", "main", "-out", "deep/out"])
    assert stat.S_IMODE((at / "deep").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (at / "deep/out").iterdir()} == {0o600}


def test_results_of_an_earlier_run_are_replaced(at: Path) -> None:
    for _ in range(2):
        assert main(["convert", "-d", "main", "-out", "out"]) == 0
    assert files(at / "out") == files(OUT / "main")


def test_overflow(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overflow", "-d", "ovf_old", "-out", "out"]) == 0
    made, expected = files(at / "out"), files(OUT / "ovf_old")
    (summary,) = [name for name in made if re.fullmatch(r"overflow_summary_\d{14}\.txt", name)]
    (golden,) = [name for name in expected if name.startswith("overflow_summary_")]
    assert made.pop(summary) == expected[golden]
    assert made == {name: data for name, data in expected.items() if name != golden}
    assert expected[golden].decode() in capsys.readouterr().out


@pytest.mark.parametrize(("folder", "code"), [("main", 0), ("missing", 3)])
def test_overflow_of_nothing(at: Path, folder: str, code: int) -> None:
    assert main(["overflow", "-d", folder]) == code
    assert not list(at.glob("overflow_summary*"))


def test_the_other_door(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["msaccucmp", "convert", "-d", "zoo_bool", "-out", "out"]
    assert msdump_main(arguments) == 0
    assert files(at / "out") == files(OUT / "zoo_bool")
    assert msdump_main(["msaccucmp"]) == 6
