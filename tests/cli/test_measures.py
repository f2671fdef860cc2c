"""`varcal measures` prints what `vc.measures` gives."""

import json

import pyarrow as pa
from pyarrow import parquet

import varcal as vc
from cases.command_line import COLUMNS, run


def test_all_rows_and_groups(tmp_path):
    income = vc.datasets.load_income().part("test")
    table = {"y": income.y[:900], "p": income.p[:900], "sex": income["sex"][:900]}
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(table), path)
    wanted = vc.measures(table["y"], table["p"], {"sex": table["sex"]})
    done = run("measures", path, *COLUMNS, "--variables", "sex")
    assert done.returncode == 0 and done.stdout == f"{wanted}\n"
    plain = run("measures", path, *COLUMNS, "--json")
    assert json.loads(plain.stdout)["measures"] == wanted.to_dict()["measures"][:7]
    assert "no column 'sx'" in run("measures", path, *COLUMNS, "--variables", "sx").stderr
