"""The paper's experiments, run again, with every published figure next to ours.

The command ``varcal reproduce`` calls :func:`reproduce`.
"""

from varcal.experiments._reproduce import EXPERIMENTS, PROTOCOLS, reproduce
from varcal.experiments._reproduction import (
    INDEX_FILES,
    RESULT_FILES,
    Reproduction,
    check_folder,
    drop_index,
    verdict,
    write_index,
)

__all__ = [
    "EXPERIMENTS",
    "INDEX_FILES",
    "PROTOCOLS",
    "RESULT_FILES",
    "Reproduction",
    "check_folder",
    "drop_index",
    "reproduce",
    "verdict",
    "write_index",
]
