"""`msdump skill`: the file that teaches an agent to use msdump."""

from __future__ import annotations

import argparse
from importlib import resources

from msdump.cli.exit_status import FINE
from msdump.cli.printing import say

_EPILOG = """
examples:
  msdump skill > skills/msdump/SKILL.md   where the agent looks for skills
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Print a skill file (SKILL.md) that teaches an agent the workflows of msdump."
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Print; the result is the exit status that `--help` explains."""
    say(resources.files("msdump.cli.agents").joinpath("SKILL.md").read_text(encoding="utf-8"), end="", wraps=False)
    return FINE
