"""`msdump mcp` refuses what it cannot serve, also where the package of the protocol is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msdump.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/nowhere"], "FOLDER: expected a folder, got '/nowhere'"),
        (["--timeout", "0", "."], "--timeout: expected seconds above 0, got 0"),
        (["--timeout", "nan", "."], "--timeout: expected seconds above 0, got nan"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_without_the_package(tmp_path: Path) -> None:
    """The message says how to install it; the server's module alone imports it."""
    code = (
        "import sys\nsys.modules['mcp'] = None\nfrom msdump.cli.main import main\n"
        f"sys.exit(main(['mcp', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "Install it: pip install 'msdump[mcp]'" in done.stderr and done.stdout == ""
