"""Print the data files of a dump that a name pattern matches, one in a line.

python get_tensor_path.py --dump_config data_dump.json --name "Conv2D.*.output.0.*.npy"
python get_tensor_path.py --dump_config async_dump.json --name "Conv2D.*"
"""

import argparse
import json
import os
import sys
from pathlib import Path


def iteration_folders(config_path, iteration):
    """Folders that a dump with this configuration fills in one iteration.

    Synchronous: {path}/rank_{rank_id}/{net_name}/{graph_id}/{iteration}.
    Asynchronous: {path}/{time}/{device_id}/{model_name}/{model_id}/{iteration}.
    """
    sections = json.loads(Path(config_path).read_text(encoding="utf-8"))
    settings = sections["common_dump_settings"]
    path = settings.get("path")
    if not path:
        base = os.environ.get("MS_DIAGNOSTIC_DATA_PATH")
        if not base:
            sys.exit(f"{config_path}: expected a path, got none, and MS_DIAGNOSTIC_DATA_PATH is not set.")
        path = os.path.join(base, "debug_dump")
    is_sync = sections.get("e2e_dump_settings", {}).get("enable", False)
    above = f"rank_*/{settings['net_name']}/*" if is_sync else "*/*/*/*"
    return sorted(Path(path).glob(f"{above}/{iteration}"))


def main():
    parser = argparse.ArgumentParser(description="Print the data files of a dump.")
    parser.add_argument("--dump_config", required=True, help="the configuration of the dump")
    parser.add_argument("--iteration", default="0", help="which iteration, default 0")
    parser.add_argument("--name", default="Conv2D.*.output.0.*.npy", help="pattern of file names, default %(default)s")
    args = parser.parse_args()
    files = [
        file
        for folder in iteration_folders(args.dump_config, args.iteration)
        for file in sorted(folder.glob(args.name))
    ]
    if not files:
        sys.exit(f"expected files {args.name} of iteration {args.iteration} in the dump, got none.")
    print(*files, sep="\n")


if __name__ == "__main__":
    main()
