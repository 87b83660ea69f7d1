"""Mutants that no test can kill, each with the reason: what they change is nothing that anybody sees."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """Mutants of any module: patterns for the whole changed lines."""

    before: str
    after: str
    reason: str


@dataclass(frozen=True)
class Survivor:
    """One mutant: the stripped lines before and after the change, as `python -m tests.mutation` prints them.

    after   ANY for every change of the line
    """

    module: str
    before: str
    after: str
    reason: str


ANY = "*"

KINDS = (
    Kind(r"@final", "", "mypy alone reads it"),
    Kind(
        r"@dataclass\(.*frozen=True.*\)", r"@dataclass\(.*frozen=False.*\)", "mypy refuses code that would set a field"
    ),
    Kind(r"@dataclass\(.*slots=True.*\)", r"@dataclass\(.*slots=False.*\)", "slots save memory"),
    Kind(
        r".*\bstrict=True.*",
        r".*\bstrict=False.*",
        "a check of lists that the program has made with one length; no input makes them differ",
    ),
    Kind(r"@functools\.lru_cache\(maxsize=.*\)", r"@functools\.lru_cache\(maxsize=.*\)", "how much is remembered"),
    Kind(r"@functools\.(lru_cache\(maxsize=.*\)|cache)", "", "what is remembered is the same when it is made again"),
)

_POPULATE = "pages are fetched before they are read, or while; the bytes are the same"
_SHARES = "how rows are shared between threads changes no bit of the result (test_threads_do_not_change_a_bit)"

SURVIVORS = (
    Survivor(
        "msdump/config/acl.py",
        "return match[1], int(digits) if len(digits) < 10 else _LARGEST_SLOT",
        "return match[1], int(digits) if len(digits) < 11 else _LARGEST_SLOT",
        "ten digits are 10**9 or more, and no operator has so many tensors: either number names none",
    ),
    Survivor(
        "msdump/config/sections.py",
        "problems = error.errors(include_url=False)",
        "problems = error.errors(include_url=True)",
        "a link to pydantic's pages beside each error; no message shows it",
    ),
    Survivor(
        "msdump/config/linear_regex.py",
        "width = part.getwidth()[0] if direction < 0 else 0",
        "width = part.getwidth()[ 1] if direction < 0 else 0",
        "`re` refuses to look back over a width that is not fixed: least and most are one number",
    ),
    Survivor(
        "msdump/dumpers/streaming.py",
        "op = OpInfo(graph_id, -1, DATA, data.value.name, 0, 0, (data.info,), (data.info,))",
        "op = OpInfo(graph_id, +1, DATA, data.value.name, 0, 0, (data.info,), (data.info,))",
        "the index of what is no operator of the graph; records and names do not hold it",
    ),
    Survivor(
        "msdump/dumpers/streaming.py",
        "threads: int = 2,",
        ANY,
        "any number of threads leaves the same files (test_several_threads_leave_what_one_leaves)",
    ),
    Survivor("msdump/dumpers/overflow.py", "_STATUS = 1", "_STATUS = 2", "any bit but none means an overflow"),
    Survivor(
        "msdump/formats/acl_chunks.py",
        "_COPIED_BYTES = 64 << 10",
        ANY,
        "whether small pieces are joined before they are sent; the callback gets the same bytes",
    ),
    Survivor(
        "msdump/formats/exception.py",
        "_MAX_JSON_BYTES = 64 << 20",
        ANY,
        "a bound of memory, far above what a core says and far below what a machine has",
    ),
    Survivor(
        "msdump/formats/atomic.py",
        "self._has_unnamed = False",
        "self._has_unnamed = True",
        "the next file asks again for what the file system does not have, and gets the same answer",
    ),
    Survivor(
        "msdump/formats/direct.py",
        "if left >= _RUN_BYTES and (address + start - position) % PAGE == 0:",
        "if left >= _RUN_BYTES and (address + start - position) // PAGE == 0:",
        "all bytes then go through a buffer; which way they take is a matter of time",
    ),
    Survivor("msdump/formats/direct.py", "_RUN_BYTES = 256 << 10", ANY, "from where the direct way is worth its calls"),
    Survivor(
        "msdump/formats/writer.py",
        "if 4 * len(name) <= NAME_MAX_BYTES or len(name.encode()) <= NAME_MAX_BYTES:",
        "if 4 * len(name) < NAME_MAX_BYTES or len(name.encode()) <= NAME_MAX_BYTES:",
        "the first half spares the exact count of the second, which gives the same answer",
    ),
    Survivor(
        "msdump/storage/plain.py",
        'if sys.platform != "linux" or not _FEW_BYTES <= array.nbytes <= _MANY_BYTES:',
        'if sys.platform != "linux" or not _FEW_BYTES < array.nbytes <= _MANY_BYTES:',
        _POPULATE,
    ),
    Survivor(
        "msdump/storage/plain.py",
        "while owner is not None and not isinstance(owner, mmap.mmap):",
        "while owner is not None and  isinstance(owner, mmap.mmap):",
        _POPULATE,
    ),
    Survivor(
        "msdump/formats/npy.py",
        "missing = max(0, PREFIX_BYTES + len(text) + 1 - len(header))",
        "missing = max( -1, PREFIX_BYTES + len(text) + 1 - len(header))",
        "rounded up to a multiple of 64, -1 is 0",
    ),
    Survivor(
        "msdump/formats/npy.py",
        "flat = (array if array.flags.c_contiguous else array.T).reshape(-1)",
        "flat = (array if array.flags.c_contiguous else array.T).reshape(- 2)",
        "numpy takes any negative size for the one to find",
    ),
    Survivor(
        "msdump/formats/statistic_csv.py",
        "self._thread_count = min(4, os.cpu_count() or 1) if thread_count is None else thread_count",
        "self._thread_count = min( 5, os.cpu_count() or 1) if thread_count is None else thread_count",
        "any number of threads leaves the same rows",
    ),
    Survivor(
        "msdump/formats/statistic_csv.py",
        'f"{file.path}: expected the columns {self._header}, got {file.first_line()[:300]} of an earlier "',
        ANY,
        "how much of a wrong line a message shows",
    ),
    Survivor(
        "msdump/statistics/md5.py",
        "return hashlib.md5(data, usedforsecurity=False).hexdigest()",
        "return hashlib.md5(data, usedforsecurity=True).hexdigest()",
        "the flag matters only where the system forbids MD5 for security, as in FIPS mode",
    ),
    Survivor(
        "msdump/statistics/stats.py",
        "kernel = row_kernel(name, flat.nbytes <= plain_bytes)",
        "kernel = row_kernel(name, flat.nbytes < plain_bytes)",
        "both kernels give the same numbers (test_large_arrays_agree_with_numpy_and_with_small_ones)",
    ),
    Survivor(
        "msdump/statistics/stats.py",
        "in_threads(work, row_count, thread_count if flat.nbytes >= _THREADED_BYTES else 1)",
        "in_threads(work, row_count, thread_count if not flat.nbytes >= _THREADED_BYTES else 1)",
        _SHARES,
    ),
    Survivor(
        "msdump/statistics/stats.py",
        "edges = [row_count * share // thread_count for share in range(thread_count + 1)]",
        "edges = [row_count * share * thread_count for share in range(thread_count + 1)]",
        _SHARES + "; here the first has all rows",
    ),
    Survivor(
        "msdump/statistics/stats.py",
        "(top, low), sums, counts = extremes[0].tolist(), sums[0], counts[0]",
        "(top, low), sums, counts = extremes[ -1].tolist(), sums[0], counts[0]",
        "there is one row",
    ),
    Survivor(
        "msdump/statistics/kernels.py",
        '"float8_e5m2": (0x7F, 0x7C),',
        '"float8_e5m2": ( 126, 0x7C),',
        "the last bit of a magnitude does not decide whether it is 0x7C or more",
    ),
)


def reason_for(module: str, before: str, after: str) -> str | None:
    """Why this mutant may survive; None when nothing explains it."""
    for kind in KINDS:
        if re.fullmatch(kind.before, before) and re.fullmatch(kind.after, after):
            return kind.reason
    for survivor in SURVIVORS:
        if (survivor.module, survivor.before) == (module, before) and survivor.after in (ANY, after):
            return survivor.reason
    return None
