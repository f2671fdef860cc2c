"""Forged bytes: valid ones with a few changes, as accidents and attackers make them."""

from __future__ import annotations

from random import Random

#: Pieces that parsers treat in a special way.
TOKENS = [
    *(b"\0", b"\n", b"\r\n", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b";", b"\t", b":", b"'"),
    *(b"null", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"1e-400", b"true", b"0x10"),
    *(b"9" * 25, b"18446744073709551616", b"9007199254740993", b"\xff", b"\xff\xfe", b"\xc3\x28"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"[" * 60, b'{"a":' * 60),
    *(b"PAR1", b"ARROW1", b"\x1f\x8b", b"0,5", b"0.5", b"2024-02-30", b"24:00", b"%s%n", b"=1+1"),
    *(b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"\x80" * 4),
]


def mutated(random: Random, base: bytes) -> bytes:
    """Return bytes with a few changes."""
    data = bytearray(base)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        place = random.randrange(len(data) + 1)
        kind = random.randrange(7)
        if kind == 0 and data:
            data[place % len(data)] = random.choice((0, 255, 127, 128, random.randrange(256)))
        elif kind == 1 and data:
            data[place % len(data)] ^= 1 << random.randrange(8)
        elif kind == 2:
            data[place:place] = random.choice(TOKENS)
        elif kind == 3:
            del data[place : place + random.choice((1, 1, 2, 8, 64))]
        elif kind == 4:
            piece = data[place : place + random.choice((1, 4, 32))]
            data[place:place] = piece * random.choice((1, 2, 40))
        elif kind == 5:
            token = random.choice(TOKENS)
            data[place : place + len(token)] = token
        elif random.random() < 0.3:
            del data[place:]
    return bytes(data)


def text(random: Random, letters: str, longest: int) -> str:
    """Return a random text of some letters."""
    return "".join(random.choices(letters, k=random.randrange(longest + 1)))
