"""`msdump mcp FOLDER...`: answer an agent's questions about dumps, by the Model Context Protocol."""

from __future__ import annotations

import argparse
import math

from msdump.cli.agents.folders import Folders
from msdump.cli.exit_status import FINE
from msdump.errors import ConfigError

_EPILOG = """
An agent starts it, with the command line in its settings, and talks to it over standard input and output:

  {"mcpServers": {"msdump": {"command": "msdump", "args": ["mcp", "/data/dumps"]}}}

It reads and never writes; paths outside of FOLDER are refused. `msdump skill` prints a file that teaches an agent what
to ask. Needs the package mcp: pip install 'msdump[mcp]'.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Serve the answers of msdump to an agent as tools of the Model Context Protocol (MCP)."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("folders", metavar="FOLDER", nargs="+", help="a dump, or a folder with dumps somewhere below it")
    add("--timeout", type=float, default=300, metavar="SECONDS", help="longest time of an answer (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Serve until the agent closes standard input; the result is the exit status that `--help` explains."""
    if not 0 < args.timeout < math.inf:
        raise ConfigError(f"--timeout: expected seconds above 0, got {args.timeout:g}.")
    folders = Folders(args.folders)
    try:
        from msdump.cli.agents.server import serve
    except ImportError as error:
        raise ConfigError(
            "expected the package mcp, version 2 or later, got none. Install it: pip install 'msdump[mcp]', or pip "
            "install 'mcp>=2'."
        ) from error
    serve(folders, args.timeout)
    return FINE
