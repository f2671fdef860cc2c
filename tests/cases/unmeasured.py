"""The environment of processes that are interrupted or slow, without the measuring of coverage.

coverage.py holds a lock while it notes the first line of a function. A signal in that moment leaves
it locked, and the process then waits for ever.
"""

import os

VARIABLES = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")


def unmeasured(**env):
    """Return the environment, with these variables, for a process that is not measured."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES} | env
