"""`msdump view DUMP [GOLDEN]`: look at a dump in the browser."""

from __future__ import annotations

import argparse
import contextlib
import os
import webbrowser

from msdump.cli.options import add_step_options, selected_steps
from msdump.cli.printing import complain, say

ENDED = 0
_EPILOG = """
The page appears at once and fills while the tensors are measured; what was measured is kept in the user's cache, so the
next look begins with it. The server listens on this machine alone and answers those who have the printed address; the
browser is started with another one, which holds for one request.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Look at a dump in the browser: operators, elements of tensors, what is wrong, two dumps."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add("golden", metavar="GOLDEN", nargs="?", help="a dump to compare with")
    add("--file", metavar="FILE", help="write the page to a file, as `msdump report` does, and serve nothing")
    add("--follow", action="store_true", help="go on reading a dump that grows")
    add("--port", type=int, default=0, metavar="N", help="port to listen at (a free one)")
    add("--host", default="127.0.0.1", metavar="NAME", help="address to listen at (default %(default)s)")
    add("--allowed-host", action="append", default=[], metavar="NAME", help="another name that the page is called by")
    add("--no-browser", action="store_true", help="print the address, open nothing")
    add("--no-index", action="store_true", help="keep nothing in the user's cache")
    add("--mapping", metavar="FILE", help="json or csv file of pairs of operators")
    add("--allow-actions", action="store_true", help="let the page add pairs of operators to the mapping, a .json file")
    add_step_options(parser)
    add("--threads", type=int, metavar="N", help="threads that measure (one for each core)")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C; the result is the exit status that `--help` explains."""
    if args.file is not None:
        from msdump.cli import report

        defaults = {"output": args.file, "max_size": None, "md": None, "redact": False}
        return report.run(argparse.Namespace(**{**vars(args), **defaults}))
    from msdump.formats.selection import StepSelection
    from msdump.viewing.filling import Wanted
    from msdump.viewing.serving import Viewing

    selection = StepSelection(**selected_steps(args))
    wanted = Wanted(args.dump, args.golden, args.mapping, selection, args.threads, args.follow)
    with (
        Viewing(
            wanted,
            host=args.host,
            port=args.port,
            allowed_hosts=args.allowed_host,
            has_index=not args.no_index,
            has_actions=args.allow_actions,
        ) as viewing,
        contextlib.suppress(KeyboardInterrupt),
    ):  # it ends the server, also one that has not begun to serve
        say(viewing.url, flush=True, has_secrets=True, wraps=False)  # in one piece, as it is to be copied
        say("The page is at this address until Ctrl-C.", flush=True)
        if os.environ.get("SSH_CONNECTION"):
            say(
                f"From the machine that you sit at: ssh -N -L {viewing.port}:127.0.0.1:{viewing.port} HOST",
                flush=True,
            )
        elif not args.no_browser and not _opened(viewing.browser_url):
            complain("msdump view: no browser opened by itself; open the address above.")
        viewing.serve()
    return ENDED


def _opened(url: str) -> bool:
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
