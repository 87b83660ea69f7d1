"""Print the data files of a dump that a name pattern matches, one in a line.

python get_tensor_path.py --dump_config data_dump.json --name "Conv2D.*.output.0.*.npy"
"""

import argparse
import json
import os
import sys
from pathlib import Path


def net_folders(config_path):
    """Folders {path}/rank_{rank_id}/{net_name} that a dump with this configuration fills."""
    settings = json.loads(Path(config_path).read_text(encoding="utf-8"))["common_dump_settings"]
    path = settings.get("path")
    if not path:
        base = os.environ.get("MS_DIAGNOSTIC_DATA_PATH")
        if not base:
            sys.exit(f"{config_path}: expected a path, got none, and MS_DIAGNOSTIC_DATA_PATH is not set.")
        path = os.path.join(base, "debug_dump")
    return sorted(Path(path).glob(f"rank_*/{settings['net_name']}"))


def main():
    parser = argparse.ArgumentParser(description="Print the data files of a dump.")
    parser.add_argument("--dump_config", required=True, help="the configuration of the dump")
    parser.add_argument("--iteration", default="0", help="which iteration, default 0")
    parser.add_argument("--name", default="Conv2D.*.output.0.*.npy", help="pattern of file names, default %(default)s")
    args = parser.parse_args()
    files = [
        file
        for folder in net_folders(args.dump_config)
        for file in sorted(folder.glob(f"*/{args.iteration}/{args.name}"))
    ]
    if not files:
        sys.exit(f"expected files {args.name} of iteration {args.iteration} in the dump, got none.")
    print(*files, sep="\n")


if __name__ == "__main__":
    main()
