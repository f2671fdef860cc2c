"""Forged files: valid documents with one thing changed, and a checksum that matches again."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import struct
from collections.abc import Iterator
from random import Random
from typing import Any

#: What a value is replaced by.
STRANGE = (
    None, True, False, 0, 1, -1, 2, 10**6, 2**62, 2**63, 10**30, -(10**30), 0.5, -0.5, 1e308,
    -1e308, 5e-324, "", "x", "a\0b", "levels", "numeric", "over", [], {}, [[]], [None], [0, 0],
    {"x": 1}, {"float": "nan"}, {"float": "inf"}, {"float": "1"},
    {"dtype": "float64", "shape": [0], "values": []},
    {"dtype": "float64", "shape": [10**9, 10**9], "values": []},
    {"dtype": "float64", "shape": [10**9], "base64": ""},
    {"n": 1, "weight": 1.0}, {"command": "true"},
    {"method": "platt", "parameters": {}, "fitted": None},
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a document, those of long lists only in part."""
    yield path
    if isinstance(value, dict):
        for name, each in value.items():
            yield from places(each, (*path, name))
    elif isinstance(value, list):
        for k in sorted({0, 1, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            yield from places(value[k], (*path, k))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


def forge(document: Any, rng: Random) -> str:
    """Change one place of a document in one way; return what was done."""
    path = rng.choice(list(places(document))[1:])
    parent, name = at(document, path[:-1]), path[-1]
    value = parent[name]
    ways = ["replace", "remove", "double"]
    if isinstance(value, str) and len(value) > 40 and name == "base64":
        ways = ["bytes", "bytes", "cut"]
    elif isinstance(value, bool) or value is None or isinstance(value, str):
        ways += ["replace"]
    elif isinstance(value, int | float):
        ways += ["scale", "scale", "negate"]
    elif isinstance(value, list):
        ways += ["shuffle", "cut", "deepen", "swap"]
    elif isinstance(value, dict):
        ways += ["swap", "deepen", "rename"]
    way = rng.choice(ways)
    if way == "replace":
        parent[name] = copy.deepcopy(rng.choice(STRANGE))
    elif way == "remove":
        del parent[name]
    elif way == "double" and isinstance(parent, list):
        parent.insert(name, copy.deepcopy(value))
    elif way == "double":
        parent[f"{name}_"] = copy.deepcopy(value)
    elif way == "scale":
        parent[name] = value * rng.choice([2, 0, -1, 10**6, 1e-6, 1e300, 0.999])
        if isinstance(parent[name], float) and parent[name] in (float("inf"), float("-inf")):
            parent[name] = 1e308
    elif way == "negate":
        parent[name] = -value
    elif way == "shuffle":
        rng.shuffle(value)
    elif way == "cut":
        parent[name] = value[: len(value) // 2]
    elif way == "deepen":
        for _ in range(rng.choice([1, 5, 100, 400])):
            parent[name] = [parent[name]]
    elif way == "rename" and value:
        first = next(iter(value))
        value[rng.choice(["x", "", "method", "dtype"])] = value.pop(first)
    elif way == "swap":
        other = rng.choice(list(places(document))[1:])
        parent[name] = copy.deepcopy(at(document, other))
    elif way == "bytes":
        held = bytearray(base64.b64decode(value))
        strange = rng.choice([float("nan"), float("inf"), -1e308, 1e308, 1e-320, -7.0, 0.0])
        for _ in range(rng.choice([1, 3, len(held) // 8])):
            k = 8 * rng.randrange(len(held) // 8)
            held[k : k + 8] = struct.pack("<d", strange)
        parent[name] = base64.b64encode(bytes(held)).decode()
    return f"{way} {'.'.join(map(str, path))}"


def sealed(document: dict[str, Any]) -> bytes:
    """Return a document as a file whose checksum matches, which anyone can compute."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    whole = rest | {"sha256": hashlib.sha256(_packed(rest)).hexdigest()}
    return _packed(whole)


def _packed(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def forged(text: str, rng: Random) -> tuple[str, bytes]:
    """Change a document in one to three places; return what was done, and the file."""
    document = json.loads(text)
    done = [forge(document, rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    try:
        data = sealed(document)
    except (RecursionError, ValueError):  # deeper than JSON can be written, or not Unicode
        data = b'{"calibrator": 0' + b"[" * 100_000
    return "; ".join(done), data
