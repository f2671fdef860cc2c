"""Other libraries give the same results; `benchmarks/bench_peers.py` times them as well."""

import importlib.util
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "bench_peers.py"


@pytest.fixture(scope="module")
def peers():
    spec = importlib.util.spec_from_file_location("bench_peers", PEERS)
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_peers"] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


# `compare` asserts that the results agree within the tolerance of the peer.
def test_every_peer_agrees(peers, capsys):
    peers.main(["--rows", "2000", "--curve-rows", "400", "--repeats", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(peers.PEERS)
