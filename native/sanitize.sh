#!/bin/sh
# Builds the package with AddressSanitizer and UndefinedBehaviorSanitizer into a folder that is thrown away, and runs
# its tests there. PYTHON: the interpreter with PyTorch, pytest, hypothesis and msdump. Arguments go to pytest.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$here/src" "$here/tests" "$here/setup.py" "$here/pyproject.toml" "$here/msdump_native.py" "$folder"
cd "$folder"
MSDUMP_NATIVE_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1" \
    MAX_JOBS=1 "$python" setup.py -q build --build-lib "$folder/lib"
cd "$folder/tests"
# Python keeps its memory to the end, and PyTorch's libraries are not built with sanitizers: leaks are not looked for,
# and neither are mismatched ways to allocate between the two.
export ASAN_OPTIONS="detect_leaks=0:quarantine_size_mb=1:alloc_dealloc_mismatch=0:new_delete_type_mismatch=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export PYTHONPATH="$folder/lib:${PYTHONPATH:-}"
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $(gcc -print-file-name=libstdc++.so)" \
    "$python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir . "$@" .
