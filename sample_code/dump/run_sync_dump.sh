#!/usr/bin/env bash
# Train AlexNet with a synchronous dump, then find and read some of the files.
# Data and dump go to the current folder; arguments are handed to train_alexnet.py.
set -euo pipefail
samples=$(cd "$(dirname "$0")" && pwd)

export MINDSPORE_DUMP_CONFIG="$samples/data_dump.json"
# `path` in data_dump.json is empty, so the dump goes to $MS_DIAGNOSTIC_DATA_PATH/debug_dump.
export MS_DIAGNOSTIC_DATA_PATH="${MS_DIAGNOSTIC_DATA_PATH:-$PWD}"
export DEVICE_TARGET="${DEVICE_TARGET:-CPU}"
export DEVICE_ID="${DEVICE_ID:-0}"

python -m msdump run "$samples/train_alexnet.py" --device_target "$DEVICE_TARGET" --device_id "$DEVICE_ID" "$@"

echo
echo "Results of all convolutions in the first step:"
python "$samples/get_tensor_path.py" --dump_config "$MINDSPORE_DUMP_CONFIG" --name "Conv2D.*.output.0.*.npy" |
    xargs -d '\n' python "$samples/read_npy.py" --npy_files
