"""One target under atheris: `python -m tests.hostile.guided TARGET SECONDS FINDINGS`. The process ends with the run."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path

_SECONDS_EACH = 20
_CORPUS = Path(__file__).with_name("seeds")


def main(target: str, seconds: str, findings: str) -> None:
    import atheris

    with atheris.instrument_imports(include=["msdump"]):
        targets = importlib.import_module("tests.hostile.targets")
    # The first folder takes new inputs; the corpus itself stays as it is.
    grown = Path(findings, "grown", target)
    grown.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-timeout={_SECONDS_EACH}", "-rss_limit_mb=4096", "-max_len=20000"]
    options = [*limits, f"-artifact_prefix={findings}/{target}-", str(grown), str(_CORPUS / target)]
    atheris.Setup([sys.argv[0], *options], functools.partial(targets.feed, target))
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
