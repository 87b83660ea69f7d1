"""`msdump recorder list|collect PATH`: steps that flight recorders have kept, rings of ended processes."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msdump.cli.exit_status import FINE, NOTHING
from msdump.cli.printing import complain, say, say_next
from msdump.errors import ConfigError

if TYPE_CHECKING:
    from msdump.engine.recording.collecting import Survey
    from msdump.engine.recording.incidents import Incident


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "list: the incidents of a folder and the steps that each rank kept of them.\n"
        "collect: keep also what killed processes of this machine have left in their rings, and empty these. Type it "
        "on each machine of the job."
    )
    parser.epilog = "`msdump trigger PATH` makes a running job keep its last steps now."
    parser.add_argument("action", choices=("list", "collect"))
    parser.add_argument("path", metavar="PATH", help="the folder that the recorder was given")


def run(args: argparse.Namespace) -> int:
    """List or collect.   Raises: ConfigError; FormatError; WriteError."""
    from msdump.engine.recording.collecting import collect, survey
    from msdump.engine.recording.incidents import incidents_below

    path = Path(args.path)
    if not path.is_dir():
        raise ConfigError(f"{path}: expected the folder of a flight recorder, got no folder.")
    recorders = collect(path) if args.action == "collect" else survey(path)
    for each in recorders.collected:
        say(f"collected rank {each.rank}: steps {_numbers(each.kept.whole, each.kept.cut)} to {each.incident.name}")
    incidents = incidents_below(path)
    for incident in incidents:
        _print_incident(path, incident)
    _print_rings(recorders)
    if not incidents:
        complain(f"msdump recorder: {path} holds no incident.")
    else:
        from msdump.analysis.find.hints import command_line, path_word

        newest = path / incidents[-1].name
        say_next([(command_line("nan", path_word(newest)), "the first NaN in the newest one")])
    return FINE if incidents else NOTHING


def _print_incident(path: Path, incident: Incident) -> None:
    from msdump.engine.recording.collecting import kept_by_rank

    moment = datetime.datetime.fromtimestamp(incident.time).isoformat(" ", "seconds")
    rank = "" if incident.rank < 0 else f" of rank {incident.rank}"
    step = "" if incident.step < 0 else f" in step {incident.step}"
    say(f"{incident.name}  {moment}  {incident.why}{step}{rank}: {incident.text}")
    say(f"  steps {incident.first} to {incident.last} are to be kept")
    for number, kept in sorted(kept_by_rank(path, incident).items()):
        say(f"  {path / incident.name / f'rank_{number}'}: steps {_numbers(kept.whole, kept.cut)}")


def _print_rings(recorders: Survey) -> None:
    if recorders.alive:
        say(f"still recording on this machine: rank {_numbers(recorders.alive)}")
    if recorders.dead:
        say(
            f"left in rings by processes that ended: rank {_numbers(recorders.dead)}. "
            "`msdump recorder collect` keeps it."
        )
    if recorders.lost:
        say(f"lost rings, with their content: rank {_numbers(recorders.lost)}")
    for rank, host in recorders.elsewhere:
        say(f"rank {rank} records on {host}: type the command there too.")


def _numbers(whole: tuple[int, ...], cut: tuple[int, ...] = ()) -> str:
    """Numbers for people; those of `cut` have files missing."""
    from msdump.analysis.steps import ranges_text

    texts = [ranges_text(whole)] if whole else []
    texts += [f"{ranges_text(cut)} (not complete)"] if cut else []
    return ", ".join(texts) or "none"
