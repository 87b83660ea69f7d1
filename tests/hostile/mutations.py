<<<<<<< HEAD
"""Files changed at random, the same way for the same number."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Pieces that mean something in one format or another.
TOKENS = (
    b"", b"\n", b"\r\n", b",", b",,", b'"', b"'", b"(", b")", b"()", b"(0,)", b"-1", b"0", b"1e999", b"nan",
    b"null", b"inf", b"99999999999999999999", b"1" * 5000, b"[", b"]", b"{", b"}", b"[[[[[[[[", b"{}", b": <",
    b">  :  ", b"Tensor[", b"Tuple[", b"], TupleShape(", b"*999999999", b"IsWeight: true", b"%1", b"%para1_",
    b"# In file a:1/", b"../", b"/", b"\0", b"\xff", b"\x1d", b"\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"<f4",
    b"|O", b"<U1", b"True", b"false", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\xff" * 8, b"\xff" * 10, b"\0" * 8,
    b"\x01\0\0\0\0\0\0\0", b"input", b"output", b"\x93NUMPY", b"ZZZZ", b"\x7fELF",
)  # fmt: skip


def mutated(files: Sequence[bytes], number: int) -> bytes:
    """One of the files with one to four changes; the same for the same number."""
    rng = random.Random(number)
    data = bytearray(rng.choice(files))
    for _ in range(rng.randint(1, 4)):
        _change(data, files, rng)
    return bytes(data)


def _change(data: bytearray, files: Sequence[bytes], rng: random.Random) -> None:
    place = rng.randint(0, len(data))
    end = min(len(data), place + rng.choice((1, 1, 2, 4, 8, 30, 300)))
    kind = rng.randint(0, 7)
    if kind == 0 and end > place:
        data[place] ^= 1 << rng.randint(0, 7)
    elif kind == 1 and end > place:
        data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randint(0, 255)))
    elif kind == 2:
        del data[place:end]
    elif kind == 3:
        data[place:place] = data[place:end] * rng.choice((1, 2, 50))
    elif kind == 4:
        data[place:place] = rng.choice(TOKENS)
    elif kind == 5:
        data[place:end] = rng.choice(TOKENS)
    elif kind == 6:
        other = rng.choice(files)
        first = rng.randint(0, len(other))
        data[place:end] = other[first : first + rng.choice((4, 30, 300))]
    else:
        del data[place:]
=======
"""Damaged forms of the files in `corpus/`, drawn by hypothesis."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import strategies as st

CORPUS = Path(__file__).with_name("corpus")
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
>>>>>>> b5f7d3e (Add fuzz targets with a corpus for every reader)
