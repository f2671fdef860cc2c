"""Make the notebooks of the documentation from their sources, and run them.

python tools/notebooks.py [name ...]

The sources are scripts with cells: "# %%" begins code, "# %% [markdown]" text. Needs the extra
docs.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def cells(source: str) -> list[tuple[str, str]]:
    r"""Return kind and text of every cell of a script.

    >>> cells("# %% [markdown]\n# Some *text*.\n\n# %%\nprint(1)\n")
    [('markdown', 'Some *text*.'), ('code', 'print(1)')]
    """
    found = []
    for part in re.split(r"^# %%", source, flags=re.M)[1:]:
        first, _, text = part.partition("\n")
        if first.strip() == "[markdown]":
            found.append(("markdown", re.sub(r"^# ?", "", text, flags=re.M).strip()))
        else:
            found.append(("code", text.strip()))
    return found


def notebook(source: str) -> dict[str, Any]:
    """Return a notebook without results."""
    made = []
    for k, (kind, text) in enumerate(cells(source)):
        cell = {"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": text}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def executed(source: str) -> dict[str, Any]:
    """Return a notebook with its results."""
    import nbformat  # noqa: PLC0415
    from nbclient import NotebookClient  # noqa: PLC0415

    made = nbformat.from_dict(notebook(source))
    NotebookClient(made, timeout=600, kernel_name="python3", record_timing=False).execute()
    result = json.loads(nbformat.writes(made))
    result["metadata"] = notebook(source)["metadata"]
    for data in pictures(result):
        data["image/png"] = smaller(data["image/png"])
    return result


def pictures(made: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the data of all results with a picture."""
    results = [one for cell in made["cells"] for one in cell.get("outputs", ())]
    return [one["data"] for one in results if "image/png" in one.get("data", ())]


def smaller(png: str) -> str:
    """Return a picture with 64 colours."""
    from PIL import Image  # noqa: PLC0415

    small = BytesIO()
    image = Image.open(BytesIO(base64.b64decode(png)))
    image.convert("RGB").quantize(64).save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def printed(made: dict[str, Any]) -> list[str]:
    """Return what each cell of code printed."""
    return [
        "".join("".join(one.get("text", "")) for one in cell["outputs"])
        for cell in made["cells"]
        if cell["cell_type"] == "code"
    ]


def main(names: list[str]) -> None:
    """Run notebooks and write them beside their sources."""
    for source in sorted(FOLDER.glob("*.py")):
        if names and source.stem not in names:
            continue
        made = executed(source.read_text(encoding="utf-8"))
        target = source.with_suffix(".ipynb")
        target.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
