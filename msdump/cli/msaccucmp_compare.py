"""`msaccucmp compare`: the original's options, result files and exit codes."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.cli.msaccucmp import SUBCOMMANDS, log, path_argument

if TYPE_CHECKING:
    from msdump.analysis.accuracy import Pair, Request
    from msdump.analysis.accuracy_sides import Side
    from msdump.analysis.fusion_json import FusedOperator

ADVISOR_FILE = "advisor_summary.txt"
_NUMBERS = re.compile(r"[0-9]+(,[0-9]+)*")


def add_parser(subparsers: Any) -> None:
    """Add this sub-command."""
    parser = subparsers.add_parser("compare", help=SUBCOMMANDS["compare"][1], allow_abbrev=False)
    add = parser.add_argument
    add("-m", "--my_dump_path", dest="mine", required=True, type=path_argument, help="my dump: a folder or file")
    add("-g", "--golden_dump_path", dest="golden", required=True, type=path_argument, help="golden: a folder or file")
    add("-f", "--fusion_rule_file", dest="fusion", type=path_argument, help="json of the model; a folder for many")
    add("-q", "--quant_fusion_rule_file", dest="quant", type=path_argument, help="taken and left out")
    add("-cf", "--close_fusion_rule_file", dest="close_fusion", type=path_argument, help="taken and left out")
    add("-out", "--output", dest="output", default=".", type=path_argument, help="folder for the results (.)")
    add("-c", "--custom_script_path", dest="custom", type=path_argument, help="folder that holds algorithm")
    add("-alg", "--algorithm", dest="algorithm", default="all", help='"all", names or numbers 0 to 9 with commas')
    add("-a", "--algorithm_options", dest="arguments", help="Name:key=value,key=value;Name2:...")
    add("-map", "--mapping", dest="has_mapping", action="store_true", help="also write which file met which")
    add("-overflow_detection", "--overflow_detection", dest="overflow", action="store_true", help="column OverFlow")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("-r", "--range", dest="range", help="operators start,end,step of the json")
    chosen.add_argument("-s", "--select", dest="select", help="operators i,j,... of the json")
    add("-p", "--post_process", dest="post_process", type=int, choices=(0, 1), help="of .h5 files, which are not read")
    add("-max", "--max_cmp_size", dest="max_count", type=int, default=0, help="only so many first elements (all)")
    add("-advisor", "--advisor", dest="has_advisor", action="store_true", help="write advisor_summary.txt")
    add("-op", "--op_name", dest="op_name", help="detail of one tensor of this operator; with -o or -i")
    side = parser.add_mutually_exclusive_group()
    side.add_argument("-o", "--output_tensor", dest="output_tensor", type=int, help="output of -op")
    side.add_argument("-i", "--input_tensor", dest="input_tensor", type=int, help="input of -op")
    add("-n", "--topn", dest="top", type=int, default=20, help="largest errors of -op, 1 to 10000 (20)")
    add("-ml", "--max_line", dest="lines", type=int, default=1_000_000, help="lines of one file of -op (1000000)")
    add("--ignore_single_op_result", dest="ignores_elements", action="store_true", help="with -op: no csv of elements")
    add("-ffts", "--ffts", dest="ffts", action="store_true", help="both sides are FFTS+ dumps")
    add("-v", "--version", dest="dump_version", type=int, choices=(1, 2), default=2, help="taken; files tell")


def run(args: argparse.Namespace) -> int:
    """Compare; the result is the original's code."""
    from msdump.analysis.accuracy import compare_files
    from msdump.analysis.exit_codes import AnalysisError, ExitCode

    request = _request(args)
    for path in (args.mine, args.golden):
        if not os.path.exists(path):
            raise AnalysisError(ExitCode.INVALID_PATH, f"{path}: expected a file or folder, got nothing.")
    for name, value in (("-q", args.quant), ("-cf", args.close_fusion)):
        if value is not None:
            log("WARNING", f"{name}: names are taken from -f and from the files; this one is left out.")
    if os.path.isfile(args.mine) and os.path.isfile(args.golden) and _is_plain(args.mine, args.golden):
        for name, cell in compare_files(args.mine, args.golden, request).items():
            log("INFO", f"{name}: {cell}")
        return ExitCode.NONE
    if args.fusion is not None and os.path.isdir(args.fusion):
        return _run_batch(args, request)
    return _run_folder(args, request, args.mine, args.golden, args.fusion, "result")


def _request(args: argparse.Namespace) -> Request:
    """Raises: AnalysisError for options that do not go together."""
    from msdump.analysis.accuracy import Request
    from msdump.analysis.custom_metrics import chosen_metrics, metric_arguments
    from msdump.analysis.exit_codes import AnalysisError, ExitCode

    def refuse(text: str) -> AnalysisError:
        return AnalysisError(ExitCode.INVALID_PARAM, text)

    if args.post_process is not None or args.golden.endswith(".h5") or args.mine.endswith(".h5"):
        raise AnalysisError(ExitCode.UNSUPPORTED_COMPARE, ".h5: expected dump, npy, pb or quant files, got h5.")
    if (args.range is not None or args.select is not None) and args.fusion is None:
        raise refuse("-r, -s: expected -f with them, got none.")
    if args.op_name is not None and args.output_tensor is None and args.input_tensor is None:
        raise refuse("-op: expected -o or -i with it, got none.")
    if args.op_name is None and (args.output_tensor is not None or args.input_tensor is not None):
        raise refuse("-o, -i: expected -op with them, got none.")
    if not 1 <= args.top <= 10_000:
        raise refuse(f"-n: expected 1 to 10000, got {args.top}.")
    if not 10_000 <= args.lines <= 1_000_000:
        raise refuse(f"-ml: expected 10000 to 1000000, got {args.lines}.")
    if args.max_count < 0:
        raise refuse(f"-max: expected a number from 0 on, got {args.max_count}.")
    return Request(
        chosen_metrics(args.algorithm, args.custom),
        metric_arguments(args.arguments),
        args.max_count or None,
        args.overflow or _has_advisor(args),
    )


def _has_advisor(args: argparse.Namespace) -> bool:
    """The advisor needs all operators: it is left out with -r, -s and -op."""
    return bool(args.has_advisor) and args.range is None and args.select is None and args.op_name is None


def _is_plain(*paths: str) -> bool:
    return all(path.endswith((".npy", ".txt")) for path in paths)


def _run_folder(
    args: argparse.Namespace, request: Request, mine_path: str, golden_path: str, fusion: str | None, prefix: str
) -> int:
    from msdump.analysis.accuracy import (
        advisor_rows,
        has_missing,
        mapping_csv,
        measure,
        pairs_by_fusion,
        pairs_by_name,
        result_csv,
    )
    from msdump.analysis.accuracy_sides import DUMP, open_side
    from msdump.analysis.exit_codes import AnalysisError, ExitCode
    from msdump.analysis.fusion_json import read_fusion_json

    mine, golden = open_side(mine_path), open_side(golden_path)
    if fusion is None and {mine.kind, golden.kind} != {DUMP}:
        raise AnalysisError(
            ExitCode.INVALID_PARAM, f"-f: expected the json of the model for {mine.kind} against {golden.kind} files."
        )
    operators = [] if fusion is None else read_fusion_json(fusion)
    pairs = (
        pairs_by_name(mine, golden)
        if fusion is None
        else pairs_by_fusion(mine, golden, operators, _wanted(args, operators))
    )
    if args.op_name is not None:
        return _detail(args, pairs, golden)
    if not any(pair.mine is not None for pair in pairs):
        raise AnalysisError(
            ExitCode.NO_DUMP_FILE, f"{mine_path}: expected dump files of the model's operators, got none."
        )
    if not any(pair.golden is not None for pair in pairs):
        log("WARNING", "no operator is on both sides; `msdump compare --mapping` pairs operators of other names.")
    rows = measure(pairs, request)
    stamp = time.strftime("%Y%m%d%H%M%S")
    has_sequence = args.range is not None or args.select is not None
    path = write_result(args.output, f"{prefix}_{stamp}.csv", result_csv(rows, mine, golden, request, has_sequence))
    log("INFO", f"The comparison result is in {path}.")
    if args.has_mapping:
        write_result(args.output, f"{prefix.replace('result', 'mapping')}_{stamp}.csv", mapping_csv(rows))
    if _has_advisor(args):
        _advise(args, advisor_rows(rows))
    return ExitCode.NO_DUMP_FILE if has_missing(rows) else ExitCode.NONE


def _wanted(args: argparse.Namespace, operators: Sequence[FusedOperator]) -> set[int] | None:
    """Sequence numbers of -r or -s.   Raises: AnalysisError."""
    from msdump.analysis.exit_codes import AnalysisError, ExitCode

    text = args.range if args.range is not None else args.select
    if text is None:
        return None
    numbers = [int(part) for part in text.split(",")] if _NUMBERS.fullmatch(text) else []
    if args.select is not None and numbers:
        return set(numbers)
    if args.range is not None and len(numbers) in (2, 3):
        start, end, step = (*numbers, 1)[:3]
        if 1 <= start <= end <= len(operators) and step >= 1:
            return set(range(start, end + 1, step))
    raise AnalysisError(
        ExitCode.INVALID_PARAM,
        f'-r, -s: expected start,end,step or i,j,... with operators 1 to {len(operators)}, got "{text}".',
    )


def _advise(args: argparse.Namespace, rows: Any) -> None:
    from msdump.analysis.advisor import advise

    found = advise(rows)
    path = write_result(args.output, ADVISOR_FILE, found.text)
    for line in found.text.splitlines():
        log("INFO", line)
    log("INFO", f"The advice is in {path}.")


def _detail(args: argparse.Namespace, pairs: Sequence[Pair], golden: Side) -> int:
    from msdump.analysis.accuracy import detail_name
    from msdump.analysis.exit_codes import AnalysisError, ExitCode
    from msdump.analysis.tensor_detail import DetailRequest, write_detail
    from msdump.formats.async_layout import safe_piece

    io = "input" if args.input_tensor is not None else "output"
    index = args.input_tensor if args.input_tensor is not None else args.output_tensor
    wanted = safe_piece(args.op_name), io, index
    pair = next((pair for pair in pairs if (safe_piece(pair.mine_name), pair.io, pair.index) == wanted), None)
    if pair is None or pair.mine is None or pair.golden is None:
        raise AnalysisError(
            ExitCode.NO_DUMP_FILE, f"-op: expected {args.op_name}, {io} {index} on both sides, got it on none or one."
        )
    x, y = pair.mine.load(pair.origin_format, pair.origin_shape), pair.golden.load()
    if x.size != y.size:
        raise AnalysisError(ExitCode.INVALID_SHAPE, f"{args.op_name}: shapes {list(x.shape)} and {list(y.shape)}.")
    names = detail_name(pair.mine_name, io, index), detail_name(pair.golden.op_name, pair.golden.io, pair.golden.index)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    detail = DetailRequest(args.top, args.lines, not args.ignores_elements)
    format_name = pair.origin_format or pair.golden.source.format or "ND"
    for path in write_detail(folder, names[0], names, x, y, format_name, detail):
        log("INFO", f"wrote {path}")
    return ExitCode.NONE


def _run_batch(args: argparse.Namespace, request: Request) -> int:
    """Every model of a time-stamp folder: time/device/model/model_id/step, each with {model}.json of -f."""
    from msdump.analysis.exit_codes import AnalysisError, ExitCode

    found = sorted(path for path in Path(args.mine).glob("*/*/*/*") if path.is_dir())
    if not found:
        raise AnalysisError(
            ExitCode.INVALID_PATH, f"{args.mine}: expected device/model/model_id/step below it, got no such folders."
        )
    code: int = ExitCode.NONE
    for folder in found:
        device, model, _, step = folder.relative_to(args.mine).parts
        fusion = Path(args.fusion, f"{model}.json")
        if not fusion.is_file():
            log("WARNING", f"{fusion}: expected the json of {model}, got nothing. It is left out.")
            code = code or ExitCode.INVALID_PATH
            continue
        golden = next((path for path in _goldens(args.golden, device, model, step) if os.path.isdir(path)), args.golden)
        prefix = f"{device}_{model}_{step}_result"
        code = code or _run_folder(args, request, str(folder), golden, str(fusion), prefix)
    return code


def _goldens(root: str, device: str, model: str, step: str) -> list[str]:
    """Where the golden files of a model may lie, the most particular place first."""
    same = [str(path) for path in sorted(Path(root).glob(f"{device}/{model}/*/{step}"))]
    return [*same, os.path.join(root, model), root]


def write_result(folder: str, name: str, text: str) -> Path:
    """Write one result file; its path.   Raises: AnalysisError when it cannot be written."""
    from msdump.analysis.exit_codes import AnalysisError, ExitCode
    from msdump.plain_files import plain_opener

    path = Path(folder, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "w", encoding="utf-8", errors="backslashreplace", opener=plain_opener()) as file:
            file.write(text)
    except OSError as error:
        raise AnalysisError(ExitCode.WRITE_FILE, f"{path}: expected to write it, got: {error.strerror}.") from error
    return path
