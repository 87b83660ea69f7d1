"""Exit statuses of all commands: the one table, from which `--help` is made and which docs/exit-status.md shows.

`msdump msaccucmp` is not in it: its statuses are CANN's.
"""

from __future__ import annotations

from collections.abc import Mapping

FINE, FOUND, REFUSED, NOTHING, INCOMPLETE, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143
# Of what runs a script or a model: it failed. The status is the one that Python itself gives such a script.
FAILED = FOUND

MEANINGS = {
    FINE: "done; of a question: nothing is wrong",
    FOUND: "of a question: something is wrong, or differs; of what runs a script or model: it failed",
    REFUSED: "nothing was done: wrong usage, a wrong configuration, a path, script or package that is missing, "
    "something that cannot be read or written",
    NOTHING: "nothing was there: nothing was dumped, or no tensor, operator, line or file is what was selected",
    INCOMPLETE: "done in part: files are damaged, or could not be written",
    INTERRUPTED: "interrupted with Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}

_REFUSED = "wrong usage, or something that it needs is missing, cannot be read, or cannot be written"
_RUN = {
    FINE: "everything that was asked for is on disk, or no dump was configured",
    FAILED: "the script failed; any other status of its own is kept as well",
    REFUSED: "wrong usage, or the script is missing, or the configuration is missing or wrong, or no dump can begin in "
    "the folder",
    NOTHING: "a dump was configured, and nothing matched it",
    INCOMPLETE: "the dump is not complete",
    INTERRUPTED: "interrupted with Ctrl-C; files on disk are whole",
    TERMINATED: "ended by SIGTERM; files on disk are whole",
}
_NO_DUMP = "nothing of a dump is there, or nothing that was selected"
_NO_OPERATOR = f"{_NO_DUMP}, or no operator goes by that name"
_NOT_RUNNABLE = f"{_REFUSED}: also where the operator cannot be run, or the dump lacks what it reads"
_TREE = {FINE: "done", NOTHING: "there was nothing to do", INCOMPLETE: "something could not be kept"}
_WRITTEN = {FINE: "written", NOTHING: _NO_DUMP, INCOMPLETE: "written, and there are damaged files"}
_IN_PART = "and the dump is not complete or has damaged files"
_PLAN = {
    FINE: "the configurations hold",
    FAILED: "the script of a dry run failed, or computed nothing",
    REFUSED: "wrong usage, a missing script, a configuration that does not hold, a folder that cannot be made, or a "
    "graph file that cannot be read",
    NOTHING: "something can never match, or nothing is dumped",
}

# command -> status -> what it means there. Every command has REFUSED, which means `_REFUSED` where it is not listed.
BY_COMMAND: Mapping[str, Mapping[int, str]] = {
    "demo": _RUN,
    "run": _RUN,
    "acl": {
        **_RUN,
        FINE: "everything that was asked for is on disk; of `check`: the acl.json holds",
        FAILED: "the model failed, is none that can run, or was given other inputs than it takes",
        REFUSED: "wrong usage, a file that cannot be read, an acl.json that does not hold, or a folder in which no "
        "dump can begin",
        NOTHING: "a dump was asked for, and its file selects nothing, or nothing matched it; of `check`: nothing is "
        "dumped",
    },
    "init": {FINE: "written, and the configuration holds", **{status: _PLAN[status] for status in (REFUSED, NOTHING)}},
    "plan": _PLAN,
    "schema": {FINE: "printed"},
    "native": {
        FINE: "built, or built before; it was checked, and works",
        REFUSED: "wrong usage, or PyTorch, a compiler, headers or room on the disk are missing, or it does not "
        "compile, or does not work",
        NOTHING: "of --check and --remove: nothing was built",
    },
    "ls": {FINE: "listed", NOTHING: _NO_DUMP, INCOMPLETE: "listed, and there are damaged files"},
    "show": {FINE: "shown", NOTHING: _NO_OPERATOR, INCOMPLETE: "shown, and a file of the operator is damaged"},
    "where": {FINE: "found", NOTHING: "no operator comes from such a line, or there is no graph file"},
    "report": {**_WRITTEN, INCOMPLETE: f"written, {_IN_PART}"},
    "view": {
        FINE: "ended by Ctrl-C",
        REFUSED: "wrong usage, no such path, a port in use, or a package that is missing",
    },
    "nan": {
        FINE: "everything is finite, or every NaN and Inf is benign, and what is trained learns",
        FOUND: "a NaN or an unexpected Inf was found, or a training that does not learn, grows or stands still",
        NOTHING: _NO_DUMP,
        INCOMPLETE: f"what is there is finite, {_IN_PART}",
    },
    "compare": {
        FINE: "all that was compared agrees",
        FOUND: "something differs",
        REFUSED: f"{_REFUSED}, or the dumps have no operator in common",
        NOTHING: _NO_DUMP,
        INCOMPLETE: "what was compared agrees, and there are damaged files",
    },
    "plot": {FINE: "drawn", NOTHING: _NO_DUMP, INCOMPLETE: "drawn, and there are damaged files"},
    "stat": {
        FINE: "done; with --golden: all agree; with --unchanged: all parameters with a gradient have changed",
        FOUND: "--golden found a difference, --unchanged a parameter with a gradient that stayed the same",
        REFUSED: f"{_REFUSED}; with --golden: also where the dumps have no operator in common",
        NOTHING: _NO_DUMP,
        INCOMPLETE: f"done, {_IN_PART}",
    },
    "replay": {
        FINE: "the dumped output is what the dumped inputs give: look at the inputs; with --everywhere: all workers "
        "computed the same bits",
        FOUND: "it is not: look at the operator; with --everywhere: they did not",
        REFUSED: _NOT_RUNNABLE,
        NOTHING: _NO_OPERATOR,
    },
    "repro": {FINE: "written", REFUSED: _NOT_RUNNABLE, NOTHING: _NO_OPERATOR},
    "zoom": {FINE: "written; with --run all statuses are those of the run", NOTHING: _NO_OPERATOR},
    "ranks": {
        FINE: "all ranks agree",
        FOUND: "some disagree, or differ from --golden",
        NOTHING: _NO_DUMP,
        INCOMPLETE: "they agree, and ranks, iterations or files are missing or damaged, or belong to another job or "
        "version",
    },
    "query": {
        FINE: "nothing was found",
        FOUND: "a ready question has found something",
        INCOMPLETE: "there are damaged tables",
    },
    "pack": _TREE,
    "unpack": _TREE,
    "recover": _TREE,
    "upload": {FINE: "all is there", INCOMPLETE: "some files could not be sent: they are named"},
    "recorder": {FINE: "there are incidents", NOTHING: "there are none"},
    "trigger": {FINE: "asked", NOTHING: "no running recorder writes to this folder"},
    "convert": {
        FINE: "everything is converted",
        NOTHING: "there was nothing to convert",
        INCOMPLETE: "something could not be converted",
    },
    "export": _WRITTEN,
    "mcp": {FINE: "the agent has closed standard input"},
    "skill": {FINE: "printed"},
    "docs": {FINE: "printed", NOTHING: "no page has such words, or that name"},
    "doctor": {FINE: "no problem", FOUND: "problems were found and printed"},
    "completion": {FINE: "printed"},
}


def statuses(command: str) -> dict[int, str]:
    """What the statuses of a command mean; empty for one whose statuses are another tool's."""
    listed = BY_COMMAND.get(command)
    return {} if listed is None else dict(sorted({REFUSED: _REFUSED, **listed}.items()))


def exit_help(command: str) -> str:
    """The end of what `--help` says; "" where `statuses` knows none."""
    lines = [f"  {status:<5}{text}" for status, text in statuses(command).items()]
    return "\n".join(["exit status:", *lines]) if lines else ""


def status_of(outcome: str) -> int:
    """The status of a comparison by the outcome of its verdict: "agrees", "differs" or "incomplete"."""
    return {"agrees": FINE, "differs": FOUND, "incomplete": INCOMPLETE}[outcome]
