import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings

settings.register_profile("varcal", deadline=None, derandomize=True)
settings.load_profile("varcal")

ROOT = Path(__file__).parents[1]

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "dict": dict,
}


def pytest_configure(config):
    # Not in pyproject.toml: that would import varcal before coverage watches.
    config.addinivalue_line("filterwarnings", "error::varcal.exceptions.VarcalWarning")


@pytest.fixture(params=FRAMES)
def make_frame(request):
    """A test that takes this runs once on each dataframe library."""
    return FRAMES[request.param]


@pytest.fixture(scope="session")
def paper_data():
    """The paper's own model outputs, which the project does not bundle."""
    folder = Path(os.environ.get("VARCAL_PAPER_DATA", ROOT.parent / "shared" / "data" / "paper"))
    if not folder.is_dir():
        pytest.skip(f"the paper's outputs are not at {folder}; set VARCAL_PAPER_DATA")
    return folder


@pytest.fixture
def rng():
    return np.random.default_rng(20230207)
