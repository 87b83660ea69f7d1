#!/bin/sh
# Builds the package with AddressSanitizer and UndefinedBehaviorSanitizer into a folder that is thrown away, and runs
# its tests there. PYTHON: the interpreter with PyTorch, pytest and hypothesis. Arguments go to pytest.
# SANITIZERS=thread: ThreadSanitizer instead. It knows nothing of how PyTorch's own threads wait for each other.
set -eu
kinds=${SANITIZERS:-address,undefined}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$here/src" "$here/tests" "$here"/*.py "$here/pyproject.toml" "$folder"
cd "$folder"
MSDUMP_NATIVE_FLAGS="-fsanitize=$kinds -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1" \
    MAX_JOBS=1 "$python" setup.py -q build --build-lib "$folder/lib"
cd "$folder/tests"
# Python keeps its memory to the end, and PyTorch's libraries are not built with sanitizers: leaks are not looked for,
# and neither are mismatched ways to allocate between the two.
export ASAN_OPTIONS="detect_leaks=0:quarantine_size_mb=1:alloc_dealloc_mismatch=0:new_delete_type_mismatch=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1:halt_on_error=1:${TSAN_OPTIONS:-}"
export PYTHONPATH="$folder/lib:$here/..:${PYTHONPATH:-}"
libraries="libasan.so libubsan.so"
[ "$kinds" = thread ] && libraries=libtsan.so
preload=
for each in $libraries libstdc++.so; do preload="$preload $(gcc -print-file-name=$each)"; done
LD_PRELOAD="$preload" "$python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir . "$@" .
