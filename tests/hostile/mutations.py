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
