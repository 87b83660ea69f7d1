#!/usr/bin/env bash
# Train AlexNet with an asynchronous dump, then convert some of the files to npy and read them.
# Data, dump and converted files go to the current folder; arguments are handed to train_alexnet.py.
set -euo pipefail
samples=$(cd "$(dirname "$0")" && pwd)

export MINDSPORE_DUMP_CONFIG="$samples/async_dump.json"
# `path` in async_dump.json is empty, so the dump goes to $MS_DIAGNOSTIC_DATA_PATH/debug_dump.
export MS_DIAGNOSTIC_DATA_PATH="${MS_DIAGNOSTIC_DATA_PATH:-$PWD}"
# On Ascend, convolutions lie in the files as the device keeps them: NC1HWC0 and FRACTAL_Z.
export DEVICE_TARGET="${DEVICE_TARGET:-Ascend}"
export DEVICE_ID="${DEVICE_ID:-0}"

python -m msdump run "$samples/train_alexnet.py" --device_target "$DEVICE_TARGET" --device_id "$DEVICE_ID" "$@"

echo
echo "Results of all convolutions in the first step:"
python "$samples/get_tensor_path.py" --dump_config "$MINDSPORE_DUMP_CONFIG" --name "Conv2D.*" |
    xargs -d '\n' python -m msdump convert --format NCHW --output-tensor 0 --output converted
find converted -name "Conv2D.*.output.0.*.npy" | sort | xargs -d '\n' python "$samples/read_npy.py" --npy_files
