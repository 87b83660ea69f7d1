"""Which test files a mutant of a module has to survive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent

# Modules without a test file of their own name: the files of the module that uses them most directly. Beside one of
# their own name: files whose tests reach what is written for their sake.
_OTHERS = {
    "msdump/formats/other_tools/containers.py": ("tests/formats/other_tools/test_files.py",),
    "msdump/formats/other_tools/members.py": ("tests/formats/other_tools/test_files.py",),
    "msdump/formats/other_tools/torch_pickle.py": ("tests/formats/other_tools/test_files.py",),
    "msdump/formats/zip_members.py": ("tests/formats/other_tools/test_files.py",),
    "msdump/formats/sidecars.py": ("tests/formats/test_bin.py", "tests/test_engines.py"),
    "msdump/formats/dump_file.py": ("tests/formats/test_exception.py",),
    "msdump/formats/writer.py": (
        "tests/formats/test_npy.py",
        "tests/formats/test_bin.py",
        "tests/formats/test_append_file.py",
        "tests/formats/test_dump_dir.py",
        "tests/formats/test_acl_stats_csv.py",
    ),
    "msdump/formats/paths/parse.py": ("tests/formats/test_dump_dir.py", "tests/formats/paths/test_acl.py"),
    "msdump/formats/dump_tensor.py": ("tests/formats/test_dump_dir.py",),
    "msdump/storage/plain.py": ("tests/formats/test_npy.py", "tests/formats/test_bin.py"),
    "msdump/config/environment.py": (
        "tests/dumpers/test_limits.py",
        "tests/graph/test_ge.py",
    ),
    "msdump/config/default.py": ("tests/engine/test_default.py",),
    "msdump/config/acl_file.py": ("tests/config/test_acl.py",),
    "msdump/config/acl_rules.py": ("tests/config/test_acl.py",),
    "msdump/config/ranges.py": ("tests/config/test_acl.py",),
    "msdump/config/plan.py": ("tests/config/test_acl.py", "tests/engine/test_acl.py"),
    "msdump/config/selection.py": ("tests/config/test_plan.py",),
    "msdump/config/sections.py": ("tests/config/test_mindspore.py",),
    "msdump/formats/sharding_json.py": ("tests/analysis/ranks/test_messages.py",),
    "msdump/formats/torchair.py": ("tests/torchair/test_dump.py", "tests/torchair/test_values.py"),
    "msdump/dumpers/dumper.py": ("tests/dumpers/test_dumpers.py",),
    "msdump/dumpers/immediate.py": ("tests/dumpers/test_dumpers.py", "tests/torchair/test_dump.py"),
    "msdump/dumpers/exception.py": ("tests/dumpers/test_acl_exception.py",),
    "msdump/dumpers/streaming.py": (
        "tests/dumpers/test_streaming.py",
        "tests/dumpers/test_memory_watcher.py",
        "tests/engine/test_acl.py",
    ),
    "msdump/dumpers/capture.py": (
        "tests/dumpers/test_streaming.py",
        "tests/dumpers/test_exception.py",
        "tests/dumpers/test_memory_watcher.py",
        "tests/dumpers/test_overflow.py",
        "tests/dumpers/test_sync.py",
        "tests/engine/test_acl.py",
    ),
    "msdump/dumpers/delivery.py": ("tests/dumpers/test_sync.py",),
    "msdump/dumpers/step_folders.py": ("tests/test_engines.py",),
    "msdump/config/recorder.py": ("tests/engine/recording/test_recorder.py",),
    "msdump/dumpers/run_files.py": ("tests/dumpers/test_limits.py", "tests/frontends/msprobe/test_files.py"),
    "msdump/dumpers/recorders.py": ("tests/graph/test_ge.py",),
    "msdump/dumpers/packs.py": ("tests/test_packs.py",),
    "msdump/dumpers/uploads.py": ("tests/storage/test_remote.py",),
    "msdump/dumpers/tally.py": ("tests/dumpers/test_delivery.py", "tests/dumpers/test_lost.py"),
    "msdump/statistics/kernels.py": ("tests/statistics/test_stats.py",),
    "msdump/statistics/lanes.py": ("tests/statistics/test_stats.py",),
    "msdump/tensors/float_bits.py": ("tests/statistics/test_stats.py",),
}

# Where the programs of docs/answers.md are the tests: they ask msdump of dumps that it made before it was changed.
_BOARD = "tests/answers/test_board.py"
_NETS = {
    "msdump/analysis/compare/": f"{_BOARD}::test_two_runs",
    "msdump/analysis/find/": f"{_BOARD}::test_one_run",
}


def is_net(files: Sequence[str]) -> bool:
    """Whether the tests are programs of docs/answers.md."""
    return any(file.startswith(_BOARD) for file in files)


def files_for(module: str) -> tuple[str, ...]:
    """The file that mirrors it (tests/formats/test_npy.py for msdump/formats/npy.py), and those of the table.

    Where programs of docs/answers.md are the tests, they are the only ones.

    Raises: LookupError for a module that has neither.
    """
    for folder, test in _NETS.items():
        if module.startswith(folder):
            return (test,)
    place = PurePosixPath(module).relative_to("msdump")
    mirror = PurePosixPath("tests", place.parent, f"test_{place.name.lstrip('_')}")
    files = (*([str(mirror)] if (ROOT / mirror).is_file() else []), *_OTHERS.get(module, ()))
    if not files:
        raise LookupError(f"{module}: expected {mirror} or a line in tests/mutation/selection.py, got neither")
    return files
