"""Print one ```bash block of README.md: `python tests/readme_block.py 2` gives the second one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def command_blocks(path: Path = README) -> list[str]:
    """The text of each ```bash block, in order. Blocks that are only to be read are marked ```sh."""
    return re.findall(r"^```bash\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


if __name__ == "__main__":
    blocks = command_blocks()
    number = int(sys.argv[1])
    if not 1 <= number <= len(blocks):
        sys.exit(f"README.md: expected at least {number} bash blocks, got {len(blocks)}.")
    sys.stdout.write(blocks[number - 1])
