"""`msdump run SCRIPT ARGS...`: an unmodified script, with the dump that its configuration asks for."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from msdump.child_reports import Inbox
from msdump.cli.drain_text import wait_for_writers
from msdump.cli.launch import on_sigterm, run_module, run_script
from msdump.cli.main import COMMANDS, DUMP_FAILED, INTERRUPTED, NOTHING_DUMPED
from msdump.cli.printing import complain
from msdump.cli.report_text import format_count, print_report, print_warning
from msdump.config.environment import DUMP_CONFIG
from msdump.errors import ConfigError, DumpError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msdump.acl_engine import AclReport
    from msdump.child_reports import ChildReport
    from msdump.frontends.torchair.dump_tally import DumpTally
    from msdump.session import RunReport, Session

_MARKED = 2  # dump_mode

_EPILOG = """\
exit status: the script's own when that is not 0, else
  0    everything that was asked for is on disk (or no dump was configured)
  3    a dump was configured and nothing matched it
  4    the dump is not complete
  130  interrupted with Ctrl-C        143  ended by SIGTERM; files on disk are whole in both cases
"""


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser(
        "run",
        help=COMMANDS["run"],
        usage="msdump run [--config FILE] [--real-mindspore] [--torch-backend NAME] [--torch-module NAME] "
        "[--torch-rnn] (SCRIPT | -m MODULE) [ARGS ...]",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help=f"dump configuration; sets {DUMP_CONFIG} for this run")
    parser.add_argument(
        "--real-mindspore", action="store_true", help="`import mindspore` gives the installed MindSpore, not msdump's"
    )
    parser.add_argument(
        "--torch-backend", metavar="NAME", help="backend of every torch.compile of the script, such as msdump"
    )
    parser.add_argument(
        "--torch-rnn",
        action="store_true",
        help="let torch.compile capture nn.RNN, nn.LSTM and nn.GRU, which PyTorch leaves out by default",
    )
    parser.add_argument(
        "--torch-module",
        metavar="NAME",
        help="compile a module that the script does not: an instance in its namespace, or a class",
    )
    # Both take the rest of the line as it is: options behind the script belong to the script.
    parser.add_argument(
        "-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module, not a file"
    )
    parser.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help="the script and its arguments")
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    """Run the script; the result is the exit status that `--help` explains."""
    target = args.module if args.module is not None else args.script
    if target and target[0] == "--":
        target = target[1:]
    if not target:
        args.parser.error("expected a script or -m MODULE, got nothing to run.")
    _choose_configuration(args.config)
    from msdump import _startup, session

    prefer_real = {"acl": False, "torchair": False, "torch_npu": True}
    if not args.real_mindspore:
        prefer_real["mindspore"] = False
    torch_options = (args.torch_backend, args.torch_module, args.torch_rnn)
    _startup.begin(prefer_real, torch_options)
    _redirect_torch(*torch_options)
    process_id = os.getpid()
    is_configured = bool(os.environ.get(DUMP_CONFIG))
    if not is_configured:
        session.on_no_dump = lambda: _warn_of_no_dump() if os.getpid() == process_id else None
    launch = run_script if args.module is None else run_module
    with Inbox() as inbox:
        status = launch(target[0], target[1:])
        with on_sigterm(signal.SIG_IGN):
            if os.getpid() != process_id:
                # Forked by the script. Whether it was to dump anything, its parent says.
                return _conclude(status, may_be_empty=True)
            children = inbox.read()
            if session.on_no_dump is not None and not children and not _turned_a_dump_on():
                _warn_of_no_dump()
            status = _conclude(status, may_be_empty=any(not child.is_empty for child in children))
            return _conclude_children(children, status)


def _choose_configuration(config: str | None) -> None:
    if config is not None:
        path = os.path.abspath(config)
        if not os.path.isfile(path):
            raise ConfigError(f"--config: expected a file, got {config!r}. There is no such file.")
        os.environ[DUMP_CONFIG] = path


def _warn_of_no_dump() -> None:
    """Say, in this process, that no dump is configured."""
    complain(
        f"msdump run: no dump is configured: neither --config nor {DUMP_CONFIG} is given, and the script turns "
        "none on. It leaves nothing behind but what it writes itself."
    )


def _turned_a_dump_on() -> bool:
    """Whether the script itself configured a dump: one of TorchAir or of ACL."""
    acl = sys.modules.get("msdump.frontends.acl.process")
    return "msdump.frontends.torchair.aot" in sys.modules or (acl is not None and bool(acl.process.dump.all_opened()))


def _redirect_torch(backend: str | None, module: str | None, with_rnn: bool) -> None:
    """What `--torch-backend`, `--torch-module` and `--torch-rnn` ask for; PyTorch is imported only then."""
    if backend is None and module is None and not with_rnn:
        return
    from msdump.frontends.torch.redirect import redirect_torch

    redirect_torch(backend, module, with_rnn)


def _conclude(status: int, may_be_empty: bool) -> int:
    """Finish the dumps of this process, report them, and choose between the script's exit status and theirs.

    may_be_empty  nothing need be dumped here: other processes of the script dump
    """
    status = _conclude_torchair(_conclude_acl(status, may_be_empty), may_be_empty)
    status = _conclude_module(_conclude_graph_mode(status, may_be_empty))
    session = _session()
    if session is None:
        _say_what_ran_outside()
        if status == 0 and os.environ.get(DUMP_CONFIG) and not may_be_empty:
            print_warning(_NO_GRAPH, sys.stderr)
            return NOTHING_DUMPED
        return status
    is_drained = session.pool is None or wait_for_writers(session.pool, sys.stderr)
    with contextlib.suppress(DumpError):  # the report says it, with everything else that is known
        session.close()
    report = session.report()
    print_report(report, sys.stderr)
    if not is_drained:
        lost = format_count(report.lost, "tensor")
        print_warning(f"Interrupted: {lost} not written. Every file on disk is whole.", sys.stderr)
        return status or INTERRUPTED
    if report.error:
        print_warning("The dump is not complete. The training itself went on.", sys.stderr)
        return status or DUMP_FAILED
    if status == 0 and report.tensors_written == 0 and report.overflows is None and not may_be_empty:
        print_warning(_nothing_matched(report, session.plan.dump_mode == _MARKED), sys.stderr)
        return NOTHING_DUMPED
    return status


def _conclude_module(status: int) -> int:
    """Say when `--torch-module` named no module that the script called."""
    module = sys.modules.get("msdump.frontends.torch.redirect")
    sentence = "" if module is None else module.why_not_compiled()
    if not sentence:
        return status
    print_warning(sentence, sys.stderr)
    return status or NOTHING_DUMPED


def _conclude_children(children: Sequence[ChildReport], status: int) -> int:
    """Report the dumps of processes that the script started."""
    for child in children:
        tensors = format_count(child.tensors_written, "tensor")
        complain(f"msdump: process {child.process_id} dumped {tensors} to {child.path}")
    errors = [f"Process {child.process_id}: {child.error}" for child in children if child.error]
    if errors:
        print_warning("\n".join(["The dump is not complete.", *errors]), sys.stderr)
        return status or DUMP_FAILED
    return status


def _conclude_acl(status: int, may_be_empty: bool) -> int:
    """Finish the ACL dumps that the script began, and say what they left."""
    module = sys.modules.get("msdump.frontends.acl.process")
    if module is None:
        return status
    dumps = [dump for dump in module.process.dump.all_opened() if dump.is_ours]
    with contextlib.suppress(DumpError):  # each report says it
        module.process.close()
    reports = [dump.report() for dump in dumps if dump.was_used]
    return _print_acl_reports(reports, status, may_be_empty)


def _conclude_graph_mode(status: int, may_be_empty: bool) -> int:
    """Finish the dumps of compiled graphs that the script asked for, and say what they left."""
    module = sys.modules.get("msdump.frontends.torchair.graph_mode_dump")
    if module is None:
        return status
    with contextlib.suppress(DumpError):  # each report says it
        module.close()
    return _print_acl_reports(module.reports(), status, may_be_empty)


def _print_acl_reports(reports: Sequence[AclReport], status: int, may_be_empty: bool) -> int:
    from msdump.cli.acl_report import print_acl_report

    for report in reports:
        print_acl_report(report, sys.stderr)
    if any(report.error for report in reports):
        print_warning("The ACL dump is not complete. The models themselves went on.", sys.stderr)
        return status or DUMP_FAILED
    if status == 0 and reports and all(report.is_empty for report in reports) and not may_be_empty:
        print_warning("Nothing was dumped: the configuration matched nothing of the models that ran.", sys.stderr)
        return NOTHING_DUMPED
    return status


def _conclude_torchair(status: int, may_be_empty: bool) -> int:
    """Say what the dumps of the script's CompilerConfig left as npy or .pt files, and whether they are complete."""
    module = sys.modules.get("msdump.frontends.torchair.dump_tally")
    tallies: Sequence[DumpTally] = () if module is None else module.TALLIES
    for tally in tallies:
        if not tally.is_empty or tally.steps:
            complain(_tally_line(tally))
        if tally.error:
            lost = format_count(tally.lost, "value")
            text = f"The {tally.name} is not complete, {lost} lost. The model itself went on.\n{tally.error}"
            print_warning(text, sys.stderr)
            status = status or DUMP_FAILED
    used = [tally for tally in tallies if tally.is_configured]
    if status == 0 and used and all(tally.is_empty for tally in used) and not may_be_empty:
        print_warning("Nothing was dumped: the filter chose no operator of the graphs that ran.", sys.stderr)
        return NOTHING_DUMPED
    return status


def _tally_line(tally: DumpTally) -> str:
    line = f"{tally.name}: {tally.files} files, {tally.bytes_written / 1e6:.1f} MB"
    if tally.steps:
        line = f"{line}, {tally.steps} graph runs, {tally.skipped} values without a file"
    return f"{line}; in {', '.join(sorted(tally.folders)) or 'no folder'}"


def _say_what_ran_outside() -> None:
    """Of a script that compiled models of PyTorch: what the dump, if any, could not see. A session's report says it."""
    if "torch._dynamo.symbolic_convert" not in sys.modules:
        return
    from msdump.frontends.torch.outside import lines

    for line in lines():
        complain(f"outside  {line}")


def _session() -> Session | None:
    """The dump of this process, if the script ever compiled a graph with one configured."""
    module = sys.modules.get("msdump.session")
    return None if module is None else module.own()


_NO_GRAPH = """\
Nothing was dumped: a dump is configured, but no graph was compiled on a device that it names.
Does the script call a network in GRAPH_MODE? Does `support_device` list this device? Does `import mindspore`
give msdump's (it does unless --real-mindspore is given)? A PyTorch script must call torch.compile with the backend
msdump, which --torch-backend msdump and --torch-module NAME do for it."""


def _nothing_matched(report: RunReport, is_marked: bool) -> str:
    lines = ["Nothing was dumped: the configuration matched no tensor of this run."]
    if report.iterations_dumped == 0:
        lines.append(f"No iteration that ran is in {report.iterations_asked!r}; the first one is 0.")
    elif report.operators_selected == 0 and is_marked:
        lines.append("`dump_mode` is 2 and no operator is marked: call mindspore.set_dump(cell) before its first run.")
    elif report.operators_selected == 0:
        lines.append("No operator matched `kernels`. `msdump plan CONFIG` shows what each entry means.")
    lines += [f"Never matched: {name}" for name in report.unmatched]
    return "\n".join(lines)
