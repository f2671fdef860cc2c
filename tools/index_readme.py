"""The README as a package index shows it, where links into the project lead nowhere.

hatchling calls the hook when it builds wheel and sdist: a link to a file becomes its text, and a
picture that is a file is left out.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A target that is not an address.
_FILE = r"\((?!https?:)[^)]*\)"


def index_text(text: str) -> str:
    r"""Return the README without pictures and links that are files of the project.

    >>> index_text("![A plot](a.png)\n\nSee [it](docs/a.md) and [that](https://a.b).")
    'See it and [that](https://a.b).'
    """
    text = re.sub(rf"!\[[^]]*\]{_FILE}\n\n", "", text)
    return re.sub(rf"\[([^]]*)\]{_FILE}", r"\1", text)


class ReadmeHook(MetadataHookInterface):
    """Gives the readme of the project's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": index_text(text)}
