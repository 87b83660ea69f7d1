"""Damaged forms of the files in `seeds/`, drawn by hypothesis."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import strategies as st

CORPUS = Path(__file__).with_name("seeds")
# What a reader may take for a length, a count, a number or the end of something.
_TOKENS = (
    *(number.to_bytes(size, "little", signed=True) for size in (1, 2, 4, 8) for number in (-1, 0, 1)),
    *(
        b"\xff\xff\xff\x7f",
        b"\x7f" * 8,
        b"\x80" * 9 + b"\x01",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
        b",",
        b"()",
        b"[",
        b"]]",
        b"{",
    ),
    *(
        b"}",
        b"-1",
        b"1e999",
        b"NaN",
        b"null",
        b"9" * 30,
        b"0|1-",
        b"\x1d",
        b"\xc2\xa0",
        b"\xed\xa0\x80",
        b"\0",
        b"../",
        b"%",
    ),
)


@cache
def seeds(target: str) -> tuple[bytes, ...]:
    """Files of the corpus, small ones first."""
    return tuple(sorted((path.read_bytes() for path in (CORPUS / target).iterdir()), key=len))


@st.composite
def damaged(draw: st.DrawFn, target: str) -> bytes:
    """A file of the corpus after up to eight edits, or any bytes."""
    data = bytearray(draw(st.sampled_from((b"", *seeds(target)))))
    for _ in range(draw(st.integers(0, 8))):
        edit = draw(st.sampled_from(("set", "insert", "token", "delete", "repeat", "cut", "splice")))
        start = draw(st.integers(0, len(data)))
        size = draw(st.integers(1, 16))
        if edit == "set":
            data[start : start + 1] = draw(st.binary(min_size=1, max_size=1))
        elif edit == "insert":
            data[start:start] = draw(st.binary(max_size=8))
        elif edit == "token":
            data[start : start + size * draw(st.booleans())] = draw(st.sampled_from(_TOKENS))
        elif edit == "delete":
            del data[start : start + size]
        elif edit == "repeat":
            data[start:start] = bytes(data[start : start + size]) * draw(st.sampled_from((1, 2, 100, 3000)))
        elif edit == "cut":
            del data[start:]
        else:
            other = draw(st.sampled_from(seeds(target)))
            data[start:] = other[draw(st.integers(0, len(other))) :]
    return bytes(data)
