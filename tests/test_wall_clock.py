"""No test may fail because the machine is slow: what a test must not contain."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: Waiting for a process, a thread, a lock or a queue with a limit in seconds.
LIMITS = re.compile(r"\b(?:join|wait|communicate|acquire|get|run|result)\([^()]*timeout=")
#: Comparing a time that was taken with a limit.
CLOCKS = re.compile(r"assert .*(?:perf_counter|monotonic|process_time|elapsed|took)\b.*<")
FILES = sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_deadline(path):
    text = path.read_text(encoding="utf-8")
    for pattern in (LIMITS, CLOCKS):
        found = pattern.search(text)
        assert found is None, f"{path.name}: {found and found[0]}"
    # The profile in conftest.py has none; a test must not set one for itself.
    assert not re.search(r"deadline=(?!None)", text)
