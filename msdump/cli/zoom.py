"""`msdump zoom DUMP OP --run SCRIPT`: dump the tensors of one suspect around an iteration."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from msdump.cli.main import main
from msdump.cli.options import add_operator_argument, add_output_option, add_step_options, selected_steps
from msdump.cli.printing import complain, say, say_next
from msdump.errors import ConfigError, FormatError, without_secrets
from msdump.process.command import ACL_RUN, OUTSIDE, RUN, Command
from msdump.storage.remote import is_remote
from msdump.tables.messages import message

WRITTEN = 0
_EPILOG = """
Without --run the configuration is written and the command that uses it printed. --run takes the rest of the line: a
script and its arguments, with options of `msdump run` before it; or an .onnx model, with options of `msdump acl run`.
The iteration is the first in which a tensor of OP is not finite; --iteration chooses another.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Write the configuration that dumps one operator's tensors around an iteration, and run it."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("dump", metavar="DIR", help="a dump of statistics or tensors, or any folder of one")
    add_operator_argument(parser)
    add_step_options(parser)
    add("--around", type=int, default=1, metavar="N", help="iterations to dump before and after that one (1)")
    add_output_option(parser, "folder of the new dump (DIR_zoom/OP)", "DIR", old_spellings=("--path",))
    add("--config", metavar="FILE", help="configuration to write, a new file (DIR_zoom/OP.json)")
    add("--acl", action="store_true", help="write an acl.json, for a model that ACL runs")
    add("--run", nargs=argparse.REMAINDER, metavar="...", help="script or .onnx model to run, and its arguments")


def run(args: argparse.Namespace) -> int:
    """Write the configuration and run it; the result is the exit status that `--help` explains."""
    from msdump.analysis.find.hints import command_of, show_line
    from msdump.analysis.find.zoom import acl_config, mindspore_config, plan_zoom, torchair_lines

    if args.around < 0:
        raise ConfigError(f"--around: expected a number from 0 on, got {args.around}.")
    try:
        zoom = plan_zoom(args.dump, args.operator, **selected_steps(args), around=args.around)
    except FormatError as error:
        raise ConfigError(str(error)) from error
    lines = torchair_lines(zoom)
    if lines is not None:
        complain("TorchAir's eager data dump is configured by the script. Set, and run it again:")
        say(lines)
        if args.run is not None:
            raise ConfigError("--run: expected a dump that a file configures, got one of TorchAir. Set the line above.")
        return WRITTEN
    command = args.run or []
    model = _model(command)
    made_by = command_of(zoom.operator)
    is_acl = args.acl or model is not None or (not command and made_by.entry == ACL_RUN)
    folder, config = _output_paths(args.dump, zoom.operator.safe_name, args.output, args.config)
    content = acl_config(zoom, folder) if is_acl else mindspore_config(zoom, folder)
    _write(config, content)
    if is_acl:
        # ACL makes no folder for its dump.
        _make(Path(folder))
    say(f"{zoom.operator.label} ({zoom.operator.op_type}), iterations {zoom.steps} around {zoom.suspicious}")
    say(f"configuration: {config}")
    arguments = _arguments(is_acl, config, command)
    if is_acl and command and model is None:
        raise ConfigError(
            f"--run: expected an .onnx model with --acl, got {command[0]!r}. A script names its acl.json itself: let "
            f"it name {config}, and run it."
        )
    if not command:
        _say_how_to_run(made_by, config, is_acl)
        return WRITTEN
    status = main(arguments)
    say_next([(show_line(folder, zoom.operator.op_name), message("its tensors, attributes and source"))])
    return status


def _say_how_to_run(made_by: Command, config: str, is_acl: bool) -> None:
    from msdump.analysis.find.hints import plain_line, run_line

    if not made_by.target or is_acl != (made_by.entry == ACL_RUN):
        line = f"{run_line(Command(ACL_RUN if is_acl else RUN, (), (), ''), config)} ..."
    elif made_by.configuration == OUTSIDE:
        line = run_line(made_by, config)
    else:
        say("the script names its configuration itself: let it name this one")
        line = plain_line(made_by)
    say_next([(line, message("dumps the operator"))])


def _model(command: list[str]) -> str | None:
    """The model that ACL runs; None for a script, whose arguments may be models."""
    is_script = any(word == "-m" or word.endswith(".py") for word in command)
    return None if is_script else next((word for word in command if word.endswith(".onnx")), None)


def _arguments(is_acl: bool, config: str, command: list[str]) -> list[str]:
    """The command line of msdump that runs a script or model with the configuration."""
    return ["acl", "run", *command, "--dump", config] if is_acl else ["run", "--config", config, *command]


def _output_paths(dump: str, name: str, path: str | None, config: str | None) -> tuple[str, str]:
    """Absolute paths of the new dump and of the configuration.   Raises: ConfigError for a file that is there."""
    # Beside the dump; for one in a store it is the current folder.
    home = re.sub(r"[^\w.-]", "_", without_secrets(dump).rstrip("/").rpartition("/")[2]) if is_remote(dump) else dump
    base = os.path.abspath(home.rstrip(os.sep)) + "_zoom"
    if config is not None and os.path.exists(config):
        raise ConfigError(f"--config: expected a new file, got {config!r}, which exists. Choose another name.")
    short = re.sub(r"[^\w.-]", "_", name[-100:]).lstrip(".") or "operator"
    return os.path.abspath(path or os.path.join(base, short)), os.path.abspath(
        config or os.path.join(base, f"{short}.json")
    )


def _write(path: str, content: dict[str, Any]) -> None:
    _make(Path(path).parent)
    try:
        Path(path).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: expected to write the configuration, got: {error.strerror}.") from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: expected a folder that can be made, got: {error.strerror}.") from error
