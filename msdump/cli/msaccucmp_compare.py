"""`msaccucmp compare`: the options, result files and exit codes of CANN's msaccucmp.py."""

from __future__ import annotations

import argparse
import glob
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.cli.options import path_argument
from msdump.cli.printing import log

if TYPE_CHECKING:
    from msdump.analysis.msaccucmp.accuracy import AccuracyRequest
    from msdump.analysis.msaccucmp.fusion_json import FusedOperator
    from msdump.analysis.msaccucmp.pairs import Pair, PairedRows
    from msdump.analysis.msaccucmp.sides import Side

ADVISOR_FILE = "advisor_summary.txt"
TOP, LINES = 20, 1_000_000


class _Metrics(argparse.Action):
    """`-alg`: one text, or several numbers 0 to 9."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if len(values) > 1 and not all(len(value) == 1 and value in "0123456789" for value in values):
            raise argparse.ArgumentError(self, f"expected one text or numbers 0 to 9, got {' '.join(values)}")
        setattr(namespace, self.dest, ",".join(values))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this sub-command."""
    add = parser.add_argument
    add("-m", "--my_dump_path", dest="mine", required=True, type=path_argument, help="my dump: a folder or file")
    add("-g", "--golden_dump_path", dest="golden", required=True, type=path_argument, help="golden: a folder or file")
    add("-f", "--fusion_rule_file", dest="fusion", default="", type=path_argument,
        help="json of the model; a folder for many")  # fmt: skip
    add("-q", "--quant_fusion_rule_file", dest="quant", default="", type=path_argument, help="taken and left out")
    add("-cf", "--close_fusion_rule_file", dest="close_fusion", default="", type=path_argument,
        help="taken and left out")  # fmt: skip
    add("-out", "--output", dest="output", default="", type=path_argument, help="folder for the results (.)")
    add("-c", "--custom_script_path", dest="custom", default="", type=path_argument,
        help="folder that holds algorithm or format_convert")  # fmt: skip
    add("-alg", "--algorithm", dest="algorithm", nargs="+", action=_Metrics, default="all",
        help='"all", or names or numbers 0 to 9 with commas (all)')  # fmt: skip
    add("-a", "--algorithm_options", dest="arguments", help="Name:key=value,key=value;Name2:...")
    add("-map", "--mapping", dest="has_mapping", action="store_true", help="only write the pairs of files")
    add("-overflow_detection", dest="overflow", action="store_true", help="column OverFlow")
    add("-r", "--range", dest="range", help="operators start,end,step of the json")
    add("-s", "--select", dest="select", help="operators i,j,... of the json")
    add("-p", "--post_process", dest="post_process", type=int, choices=(0, 1), help="of .h5 files, which are not read")
    add("-max", "--max_cmp_size", dest="max_count", type=int, default=0,
        help="only so many first elements (all); with -f")  # fmt: skip
    add("-advisor", dest="has_advisor", action="store_true", help="write advisor_summary.txt")
    add("-op", "--op_name", dest="op_name", help="detail of one tensor of this operator")
    side = parser.add_mutually_exclusive_group()
    side.add_argument("-o", "--output_tensor", dest="output_tensor", help="output of -op (0)")
    side.add_argument("-i", "--input_tensor", dest="input_tensor", help="input of -op")
    add("-n", "--topn", dest="top", type=int, help=f"largest errors of -op, 1 to 10000 ({TOP})")
    add("-ml", "--max_line", dest="lines", type=int, help=f"lines of one file of -op, 10000 to {LINES} ({LINES})")
    add("--ignore_single_op_result", dest="ignores_elements", action="store_true", default=None,
        help="with -op: no csv of elements")  # fmt: skip
    add("-ffts", dest="ffts", action="store_true", help="both sides are FFTS+ dumps")
    add("-v", "--version", dest="dump_version", type=int, choices=(1, 2), default=2, help="taken; files tell")


def run(args: argparse.Namespace) -> int:
    """Compare; the result is msaccucmp's code."""
    from msdump.analysis.msaccucmp.accuracy import compare_files

    _check_together(args)
    for path in (args.mine, args.golden):
        if not path:
            _refuse("-m, -g: expected a path, got an empty text.")
        if not os.path.exists(path):
            raise AnalysisError(ExitCode.INVALID_PATH, f"{path}: expected a file or folder, got nothing.")
    _check_kinds(args)
    for name, value in (("-q", args.quant), ("-cf", args.close_fusion)):
        if value:
            log("WARNING", f"{name}: names are taken from -f and from the files; this one is left out.")
    request = _request(args)
    if os.path.isfile(args.mine) and os.path.isfile(args.golden) and _is_plain(args.mine, args.golden):
        for name, cell in compare_files(args.mine, args.golden, request).items():
            log("INFO", f"{name}: {cell}")
        return ExitCode.NONE
    if os.path.isdir(args.fusion):
        return _run_batch(args, request)
    return _run_folder(args, request, args.mine, args.golden, args.fusion, "result")


def _check_together(args: argparse.Namespace) -> None:
    """Raises: AnalysisError for options that do not go together."""
    has_part = args.range is not None or args.select is not None
    if has_part and not args.fusion:
        _refuse("-r, -s: expected -f with them, got none.")
    if has_part and args.op_name:
        _refuse("-r, -s: expected no -op with them.")
    if args.range is not None and args.select is not None:
        _refuse("-r, -s: expected one of them, got both.")
    if args.max_count < 0:
        _refuse(f"-max: expected a number from 0 on, got {args.max_count}.")
    tensor = {"-o": args.output_tensor, "-i": args.input_tensor}
    if args.has_mapping:
        if args.op_name or any(tensor.values()):
            _refuse("-map: expected no -op, -o or -i with it.")
        if not args.fusion and not args.quant:
            _refuse("-map: expected -f or -q with it, got none.")
    detail = {**tensor, "-n": args.top, "-ml": args.lines, "--ignore_single_op_result": args.ignores_elements}
    for name, value in detail.items():
        if value is not None and args.op_name is None and not args.has_mapping:
            _refuse(f"{name}: expected -op with it, got none.")


def _check_kinds(args: argparse.Namespace) -> None:
    are_h5 = [path.endswith(".h5") for path in (args.mine, args.golden)]
    if args.post_process is not None and not all(are_h5):
        _refuse("-p: expected two .h5 files with it, got others.")
    if any(are_h5):
        raise AnalysisError(ExitCode.UNSUPPORTED_COMPARE, ".h5: expected dump, npy, pb or quant files, got h5.")


def _refuse(text: str) -> NoReturn:
    raise AnalysisError(ExitCode.INVALID_PARAM, text)


def _request(args: argparse.Namespace) -> AccuracyRequest:
    """Raises: AnalysisError for metrics and scripts that are not there, and for numbers out of their range."""
    from msdump.analysis.convert.target_format import CustomFormats
    from msdump.analysis.msaccucmp.accuracy import AccuracyRequest
    from msdump.analysis.msaccucmp.custom_metrics import chosen_metrics, metric_arguments
    from msdump.analysis.msaccucmp.pairs import parse_range, parse_selection

    if args.op_name:
        _detail_request(args)
    metrics = chosen_metrics(args.algorithm, args.custom or None, lambda text: log("WARNING", text))
    arguments = metric_arguments(args.arguments)
    if args.range:
        parse_range(args.range)
    if args.select:
        parse_selection(args.select)
    if args.max_count and not args.fusion:
        log("WARNING", "-max: expected -f with it, got none. All elements are compared.")
    has_formats = bool(args.custom) and os.path.isdir(os.path.join(args.custom, "format_convert"))
    return AccuracyRequest(
        metrics,
        arguments,
        (args.max_count or None) if args.fusion else None,
        args.overflow or _has_advisor(args),
        CustomFormats(args.custom) if has_formats else None,
    )


def _detail_request(args: argparse.Namespace) -> Any:
    from msdump.analysis.msaccucmp.tensor_detail import DetailRequest

    lines = LINES if args.lines is None else args.lines
    top = TOP if args.top is None else args.top
    if not 10_000 <= lines <= LINES:
        _refuse(f"-ml: expected 10000 to {LINES}, got {lines}.")
    if not 1 <= top <= 10_000:
        raise AnalysisError(ExitCode.INDEX_OUT_OF_BOUNDS, f"-n: expected 1 to 10000, got {top}.")
    return DetailRequest(top, lines, not args.ignores_elements)


def _has_advisor(args: argparse.Namespace) -> bool:
    """The advisor needs all operators: it is left out with -r, -s and -op."""
    return bool(args.has_advisor) and args.range is None and args.select is None and not args.op_name


def _is_plain(*paths: str) -> bool:
    return all(path.endswith((".npy", ".txt")) for path in paths)


def _run_folder(
    args: argparse.Namespace, request: AccuracyRequest, mine_path: str, golden_path: str, fusion: str, prefix: str
) -> int:
    from msdump.analysis.msaccucmp.fusion_json import read_fusion_json
    from msdump.analysis.msaccucmp.sides import open_side

    if fusion and not os.path.isfile(fusion):
        raise AnalysisError(ExitCode.INVALID_PATH, f"{fusion}: expected the json of the model, got nothing.")
    mine, golden = open_side(mine_path), open_side(golden_path)
    _check_sides(mine, golden, fusion)
    operators = read_fusion_json(fusion) if fusion else []
    pairing = _pairing(args, mine, golden, operators, bool(fusion))
    if args.op_name:
        return _detail(args, pairing.pairs, operators)
    if args.has_mapping:
        from msdump.analysis.msaccucmp.accuracy import mapping_csv

        text = mapping_csv(pairing.pairs, _has_sequence(args))
        path = write_result(args.output, _stamped(prefix.replace("result", "mapping")), text)
        log("INFO", f"The mapping is in {path}.")
        return ExitCode.NONE
    return _measure(args, request, pairing, (mine, golden), prefix)


def _check_sides(mine: Side, golden: Side, fusion: str) -> None:
    from msdump.analysis.msaccucmp.sides import DUMP, NPY, PB

    if mine.kind in (NPY, PB):
        raise AnalysisError(
            ExitCode.INVALID_DUMP_TYPE, f"{mine.path}: expected dump files in my folder, got {mine.kind} files."
        )
    if not fusion and {mine.kind, golden.kind} != {DUMP}:
        _refuse(f"-f: expected the json of the model for {mine.kind} against {golden.kind} files.")


def _pairing(
    args: argparse.Namespace, mine: Side, golden: Side, operators: Sequence[FusedOperator], has_fusion: bool
) -> PairedRows:
    from msdump.analysis.msaccucmp.pairs import pairs_by_fusion, pairs_by_name

    if not has_fusion:
        return pairs_by_name(mine, golden)
    return pairs_by_fusion(mine, golden, operators, _selected(args, operators))


def _has_sequence(args: argparse.Namespace) -> bool:
    return args.range is not None or args.select is not None


def _stamped(prefix: str) -> str:
    return f"{prefix}_{time.strftime('%Y%m%d%H%M%S')}.csv"


def _measure(
    args: argparse.Namespace, request: AccuracyRequest, pairing: PairedRows, sides: tuple[Side, Side], prefix: str
) -> int:
    from msdump.analysis.msaccucmp.accuracy import accuracy_csv, advisor_rows, measure

    rows = measure(pairing.pairs, request)
    path = write_result(args.output, _stamped(prefix), accuracy_csv(rows, *sides, request, _has_sequence(args)))
    missing = [pair.problem for pair in pairing.pairs if pair.op_name is None]
    if missing:
        log("WARNING", f"{len(missing)} operators are on one side only. The first: {missing[0]}")
    if not pairing.has_match:
        log("ERROR", "no operator is on both sides; `msdump compare --mapping` pairs operators of other names.")
        return ExitCode.NO_DUMP_FILE
    log("INFO", f"The comparison result is in {path}.")
    if _has_advisor(args):
        _advise(args, advisor_rows(rows))
    return pairing.code


def _selected(args: argparse.Namespace, operators: Sequence[FusedOperator]) -> set[int] | None:
    """Sequence numbers of -r or -s.   Raises: AnalysisError."""
    from msdump.analysis.msaccucmp.pairs import numbers_in_range, numbers_selected, parse_range, parse_selection

    count = max((operator.sequence for operator in operators), default=0)
    if args.range:
        return numbers_in_range(parse_range(args.range), count)
    if args.select:
        return numbers_selected(parse_selection(args.select), count, lambda text: log("WARNING", text))
    return None


def _advise(args: argparse.Namespace, rows: Any) -> None:
    from msdump.analysis.msaccucmp.accuracy import advise

    advice = advise(rows)
    path = write_result(args.output, ADVISOR_FILE, advice.text)
    for line in advice.text.splitlines():
        log("INFO", line)
    log("INFO", f"The advice is in {path}.")


def _detail(args: argparse.Namespace, pairs: Sequence[Pair], operators: Sequence[FusedOperator]) -> int:
    from msdump.analysis.msaccucmp.align import FusionOrigin, align, detail_arrays
    from msdump.analysis.msaccucmp.tensor_detail import Detail, write_detail

    request = _detail_request(args)
    io, text = ("input", args.input_tensor) if args.input_tensor else ("output", args.output_tensor or "0")
    if not (text.isascii() and text.isdecimal()):
        _refuse(f"-o, -i: expected a number from 0 on, got {text}.")
    pair = _detail_pair(args.op_name, io, int(text), pairs, operators)
    assert pair.mine is not None and pair.golden is not None  # else it was refused
    both = align(pair.mine, pair.golden, pair.origin or FusionOrigin())
    mine, golden, order = detail_arrays(both, pair.mine.source.format)
    folder = Path(args.output or ".")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = f"{args.op_name.replace('/', '_')}_{io}_{int(text)}"
    sides = pair.mine_name, pair.golden_name
    detail = Detail(name, os.path.basename(pair.mine.path), sides, order, mine, golden)
    for path in write_detail(folder, detail, request):
        log("INFO", f"wrote {path}")
    return ExitCode.NONE


def _detail_pair(op_name: str, io: str, index: int, pairs: Sequence[Pair], operators: Sequence[FusedOperator]) -> Pair:
    """The row of one tensor.   Raises: AnalysisError when a side does not have it."""
    from msdump.formats.paths.acl import safe_piece

    operator = next((operator for operator in operators if operator.name == op_name), None)
    if operators and operator is None:
        _refuse(f"-op: expected an operator of the json, got {op_name}.")
    if operator is not None and operator.is_inner:
        raise AnalysisError(
            ExitCode.UNSUPPORTED_COMPARE, f"-op: {op_name} is a part of a fusion and stands for no original output."
        )
    same = [pair for pair in pairs if pair.op_name is not None and safe_piece(pair.op_name) == safe_piece(op_name)]
    if not any(pair.mine is not None for pair in same):
        raise AnalysisError(ExitCode.NO_DUMP_FILE, f"-op: expected a dump file of {op_name} on both sides, got none.")
    pair = next((pair for pair in same if (pair.io, pair.index) == (io, index)), None)
    if pair is None or pair.mine is None or (pair.golden is None and not operators):
        count = sum(pair.io == io and pair.mine is not None for pair in same)
        raise AnalysisError(
            ExitCode.INDEX_OUT_OF_BOUNDS, f"-op: {op_name} has {count} {io}s on both sides, got {io} {index}."
        )
    if pair.golden is None:
        raise AnalysisError(ExitCode.NO_DUMP_FILE, f"-op: {pair.problem}")
    return pair


def _run_batch(args: argparse.Namespace, request: AccuracyRequest) -> int:
    """Every model of a time-stamp folder: time/device/model/model_id/step, each with {model}.json of -f."""
    if args.op_name:
        _refuse("-op: expected the json of one model with -f, got a folder.")
    folders = sorted(path for path in Path(args.mine).glob("*/*/*/*") if path.is_dir())
    if not folders:
        raise AnalysisError(
            ExitCode.INVALID_PATH, f"{args.mine}: expected device/model/model_id/step below it, got no such folders."
        )
    code: int = ExitCode.NONE
    for folder in folders:
        device, model, _, step = folder.relative_to(args.mine).parts
        fusion = Path(args.fusion, f"{model}.json")
        if not fusion.is_file():
            log("WARNING", f"{fusion}: expected the json of {model}, got nothing. It is left out.")
            code = code or ExitCode.INVALID_PATH
            continue
        golden = next((path for path in _goldens(args.golden, device, model, step) if os.path.isdir(path)), args.golden)
        prefix = f"{device}_{model}_{step}_result"
        # Each model has its result, also after a failure of an earlier model.
        own = _run_folder(args, request, str(folder), golden, str(fusion), prefix)
        code = code or own
    return code


def _goldens(root: str, device: str, model: str, step: str) -> list[str]:
    """Where the golden files of a model may lie, the most particular place first."""
    same = [str(path) for path in sorted(Path(root).glob(f"{glob.escape(f'{device}/{model}')}/*/{step}"))]
    return [*same, os.path.join(root, model), root]


def write_result(folder: str, name: str, text: str) -> Path:
    """Write one result file; its path.   Raises: AnalysisError when it cannot be written."""
    from msdump.storage.plain import plain_opener

    path = Path(folder, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "w", encoding="utf-8", errors="backslashreplace", opener=plain_opener()) as file:
            file.write(text)
    except OSError as error:
        raise AnalysisError(ExitCode.WRITE_FILE, f"{path}: expected to write it, got: {error.strerror}.") from error
    return path
