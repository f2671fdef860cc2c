"""A tool that is missing or too old gives one clear line."""

import pytest

from varcal.exceptions import MissingDependencyError, VarcalError
from varcal.integrations import tool


def test_a_version_that_does_not_fit():
    with pytest.raises(
        VarcalError, match=r"log_audit does not fit pytest \d.*pip install -U pytest"
    ):
        tool("pytest", "log_audit", "log_figure")
    with pytest.raises(MissingDependencyError, match="nothing_like_it"):
        tool("nothing_like_it", "log_audit")
