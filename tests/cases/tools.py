"""The scripts of tools/ as modules."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest


@cache
def load_tool(name):
    path = Path(__file__).parents[2] / "tools" / f"{name}.py"
    if not path.exists():
        pytest.skip("tools/ is not part of this copy")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module
