"""Every sample through msaccucmp's command lines: names, bytes, JSON and exit codes of msaccucmp."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.main import main as msdump_main
from msdump.cli.msaccucmp import main
from msdump.formats._proto import dump_data_pb2

GOLDEN = Path(__file__).parents[2] / "golden"
SAMPLES, OUT, NAMES = GOLDEN / "msaccucmp/samples", GOLDEN / "msaccucmp/out", GOLDEN / "msaccucmp_names"
OVERFLOW_FILE = "Opdebug.Node_OpDebug.3.7.1700000000000010"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Paths of the tests may hold characters that msaccucmp refuses; relative ones do not."""
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
    assert line == f"{SAMPLES / 'main'}/Conv2D.net_conv1.3.7.1700000000000001,input:1\n"
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
    """A mended defect: the names are msaccucmp's, and mapping.csv now tells what the digits stand for."""
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
    # msaccucmp's own result was made of a name that just fits; the values are these.
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
        (["-d", "bad_trunc"], 11),  # msaccucmp: 0, a mended defect
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
    """A mended defect: msaccucmp says so in its log and ends with 0."""
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
    assert listed == [f"{mixed}/A.hdr.1.1.1700000000000005", f"{mixed}/A.trunc.1.1.1700000000000005"]
    assert made == files(OUT / "zoo_bool")


def test_a_list_of_files_names_those_that_failed(at: Path) -> None:
    (good,), (bad,) = (list((at / name).iterdir()) for name in ("zoo_bool", "bad_hdrlen"))
    paths = [str(path.relative_to(at)) for path in (good, bad)]
    assert main(["convert", "-d", ",".join(paths), "-out", "out"]) == 11
    listed = (at / "out/convert_failed_file_list.txt").read_text()
    assert listed == f"{bad.resolve()}\n"
    assert main(["convert", "-d", paths[1], "-out", "one"]) == 11
    assert not (at / "one").exists()  # one file needs no list


def tensor_file(path: Path, **fields: object) -> Path:
    """A dump file with one output of six bytes."""
    message = dump_data_pb2.DumpData(version="2.0", op_name="net/Add_a")
    message.output.add(**{"size": 6, "data_type": 4, "format": 2, **fields})
    header = message.SerializeToString()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"123456")
    return path


@pytest.mark.parametrize("number", [13, 18, 99])
@pytest.mark.parametrize("file_type", ["npy", "bin", "msnpy"])
def test_a_dtype_without_an_array_form_ends_with_21(
    at: Path, number: int, file_type: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tensor_file(at / "dump/Add.a.1.0.1700000000000000", data_type=number)
    assert main(["convert", "-d", "dump", "-out", "out", "-t", file_type]) == 21
    assert "0 of 1 dump files are converted." in capsys.readouterr().out
    listed = (at / "out/convert_failed_file_list.txt").read_text()
    assert listed == f"{at}/dump/Add.a.1.0.1700000000000000\n"


def test_what_holds_nothing_is_not_converted(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = dump_data_pb2.DumpData(version="2.0").SerializeToString()
    (at / "A.a.1.1.1700000000000005").write_bytes(len(header).to_bytes(8, "little") + header)
    assert main(["convert", "-d", "A.a.1.1.1700000000000005", "-out", "out"]) == 0
    assert "0 of 1 dump files are converted, 1 hold nothing to convert." in capsys.readouterr().out


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_empty_file_ends_with_11(at: Path, version: str) -> None:
    (at / "A.a.1.1.1700000000000005").touch()
    assert main(["convert", "-d", "A.a.1.1.1700000000000005", "-out", "out", "-v", version]) == 11


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (2, "ND"), (15, "DECONV_SP_STRIDE8_TRANS"), (20, "LOOKUP_LOOKUPS"), (21, "LOOKUP_KEYS"), (22, "LOOKUP_VALUE"),
        (23, "LOOKUP_OUTPUT"), (24, "LOOKUP_HITS"), (45, "YUV"),
    ],
)  # fmt: skip
def test_formats_have_their_short_names_in_files(at: Path, number: int, name: str) -> None:
    tensor_file(at / "Add.net_Add_a.1.0.1700000000000000", format=number)
    for file_type in ("bin", "msnpy"):
        arguments = ["-d", "Add.net_Add_a.1.0.1700000000000000", "-out", "out", "-t", file_type]
        assert main(["convert", *arguments]) == 0
    assert set(files(at / "out")) == {
        f"Add.net_Add_a.1.0.1700000000000000.output.0.6.uint8.{name}.bin",
        f"Add.Add_a.1.0.1700000000000000.output.0.{name}.npy",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Add.x.1.0.1700000000000000", "Add.Add_a.1.0.1700000000000000"),
        ("a.b.c.d.e", "a.Add_a.c.d.e"),
        ("Add.x.1.1700000000000000", None),
        ("Add.x.1.0.1700000000000000.4.1.0.0", None),
        ("abc", None),
    ],
)
def test_names_without_five_parts_stay_before_the_format(at: Path, name: str, expected: str | None) -> None:
    tensor_file(at / "dump" / name)
    assert main(["convert", "-d", "dump", "-out", "out", "-t", "msnpy"]) == 0
    assert set(files(at / "out")) == {f"{expected or name}.output.0.ND.npy"}


@pytest.mark.parametrize(("dims", "shape"), [([2, 3], (2, 3)), ([6], (6,)), ([2, 2], (6,)), (None, (6,))])
def test_undefined_tensors_keep_their_shape(at: Path, dims: list[int] | None, shape: tuple[int, ...]) -> None:
    """Unless it is not that of the bytes: then none is lost."""
    fields = {} if dims is None else {"shape": dump_data_pb2.Shape(dim=dims)}
    tensor_file(at / "Add.x.1.0.1700000000000000", data_type=0, **fields)
    assert main(["convert", "-d", "Add.x.1.0.1700000000000000", "-out", "out"]) == 0
    (path,) = (at / "out").iterdir()
    array = np.load(path)
    assert (array.dtype, array.shape, array.tobytes()) == (np.int8, shape, b"123456")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-f", "", "-t", "npy"], 0),
        (["-f", "", "-o", "0"], 0),  # there is a -f, which names nothing
        (["--form", "ND"], 0),
        (["--type", "bin", "--vers", "2"], 0),
        (["-f", "ND", "-c", "missing"], 3),
        (["-f", "ND", "-c", "zoo_bool"], 0),  # no converters in it: a warning
        (["-f", "ND", "-o", "x"], 6),
    ],
)
def test_more_command_lines(at: Path, arguments: list[str], code: int) -> None:
    assert main(["convert", "-d", "zoo_float", "-out", "out", *arguments]) == code
    assert bool(files(at / "out")) if code == 0 else not (at / "out").exists()


def test_an_empty_folder_of_results_is_the_current_one(at: Path) -> None:
    assert main(["convert", "-d", "zoo_bool", "-out", ""]) == 0
    assert next((OUT / "zoo_bool").iterdir()).name in {path.name for path in at.iterdir()}


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
    assert main(["overflow", "-d", "ovf_old", "-out", "out", "--top_n", "2"]) == 0
    made, expected = files(at / "out"), files(OUT / "ovf_old")
    (summary,) = [name for name in made if re.fullmatch(r"overflow_summary_\d{14}\.txt", name)]
    (golden,) = [name for name in expected if name.startswith("overflow_summary_")]
    assert made.pop(summary) == expected[golden]
    assert made == {name: data for name, data in expected.items() if name != golden}
    assert expected[golden].decode() in capsys.readouterr().out


@pytest.mark.parametrize(("folder", "code"), [("main", 0), ("missing", 3)])
def test_overflow_of_nothing(at: Path, folder: str, code: int) -> None:
    assert main(["overflow", "-d", folder, "-out", "out"]) == code
    assert not list(at.rglob("overflow_summary*"))


@pytest.mark.parametrize("arguments", [["overflow", "-d", "main"], ["file_compare", "-m", "a.npy", "-g", "b.npy"]])
def test_results_that_have_no_default_folder(at: Path, arguments: list[str]) -> None:
    np.save(at / "a.npy", np.zeros(2, np.float32))
    np.save(at / "b.npy", np.zeros(2, np.float32))
    before = sorted(at.iterdir())
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert sorted(at.iterdir()) == before


def test_the_other_door(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["msaccucmp", "convert", "-d", "zoo_bool", "-out", "out"]
    assert msdump_main(arguments) == 0
    assert files(at / "out") == files(OUT / "zoo_bool")
    assert msdump_main(["msaccucmp"]) == 6
