"""The paper's files: found in a folder, checked, and downloaded from a local server."""

import gzip
import hashlib
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

from varcal.exceptions import DownloadError, InputError, MissingDependencyError, VarcalWarning
from varcal.experiments._paper_files import REGISTRY, PaperFiles, content_sha256, paper_file

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
OTHER = bytes(reversed(CONTENT))
FILE = "adult_out.csv"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serve `content`, unless the plan of the server says otherwise for a request."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        plan, server = self.server.next_plan(), self.server
        server.n_requests += 1
        if status := plan.get("status"):
            self.send_error(status)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(server.content)))
        self.end_headers()
        self.wfile.write(server.content[: plan.get("cut", len(server.content))])
        self.wfile.flush()
        if plan.get("stall"):
            server.stalled.wait()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.plans, self.n_requests = CONTENT, [], 0
        self.stalled = threading.Event()

    def next_plan(self):
        """What to do with this request; the last plan is used for all later ones."""
        return self.plans.pop(0) if len(self.plans) > 1 else (self.plans or [{}])[0]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/data/"


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.stalled.set()
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.fixture
def files(server, tmp_path):
    return PaperFiles(server.url, {FILE: sha256(CONTENT)}, tmp_path / "cache", timeout=600.0)


def names(files):
    return sorted(path.name for path in files.cache.iterdir())


class TestDownload:
    def test_once_then_from_the_cache(self, server, files):
        path = files.path("adult")
        assert path == files.cache / FILE and path.read_bytes() == CONTENT
        assert files.path("adult") == path
        assert server.n_requests == 1
        assert names(files) == [FILE]

    def test_a_damaged_file_in_the_cache_is_downloaded_again(self, files):
        files.path("adult").write_bytes(CONTENT[:100])
        assert files.path("adult").read_bytes() == CONTENT

    def test_an_interrupted_download_is_repeated(self, server, files):
        server.plans = [{"cut": 98_304}, {"cut": 49_152}, {}]
        assert files.path("adult").read_bytes() == CONTENT
        assert server.n_requests == 3
        assert names(files) == [FILE]

    def test_a_server_that_stops_sending(self, server, tmp_path):
        server.plans = [{"cut": 98_304, "stall": True}, {}]
        # On a busy machine other answers may be late as well, so there are many attempts.
        files = PaperFiles(
            server.url, {FILE: sha256(CONTENT)}, tmp_path, timeout=0.5, retries=1_000
        )
        assert files.path("adult").read_bytes() == CONTENT
        assert server.n_requests >= 2

    def test_temporary_server_errors(self, server, files):
        server.plans = [{"status": 503}, {"status": 500}, {}]
        assert files.path("adult").read_bytes() == CONTENT

    def test_several_threads_at_once(self, files):
        files.cache.mkdir()
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(files.path("adult").read_bytes()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [CONTENT] * 4
        assert names(files) == [FILE]

    def test_the_environment_variable_names_the_cache(self, server, tmp_path, monkeypatch):
        monkeypatch.setenv("VARCAL_CACHE", str(tmp_path / "named"))
        files = PaperFiles(server.url, {FILE: sha256(CONTENT)})
        assert files.path("adult") == tmp_path / "named" / FILE

    def test_nothing_is_printed(self, files, capfd):
        files.path("adult")
        assert capfd.readouterr() == ("", "")


class TestFailures:
    def test_wrong_content(self, server, files):
        server.content = OTHER
        with pytest.raises(DownloadError) as caught:
            files.path("adult")
        assert caught.value.message == (
            f"{server.url}{FILE} is not the expected file: its sha256 is not {sha256(CONTENT)}"
        )
        assert caught.value.hint == (
            f"get {FILE} in another way and give its folder as data (--data)"
        )
        assert names(files) == []

    def test_a_connection_that_is_always_interrupted(self, server, files):
        server.plans = [{"cut": 98_304}]
        with pytest.raises(DownloadError, match="interrupted"):
            files.path("adult")
        assert server.n_requests == 4 and names(files) == []

    @pytest.mark.parametrize("status", [403, 404])
    def test_not_there(self, server, files, status):
        server.plans = [{"status": status}]
        with pytest.raises(DownloadError, match=f"{FILE}: the server answered {status}") as caught:
            files.path("adult")
        assert "--data" in caught.value.hint
        assert names(files) == []

    def test_server_errors_that_stay(self, server, files):
        server.plans = [{"status": 500}]
        with pytest.raises(DownloadError, match="the server answered 500 Internal Server Error"):
            files.path("adult")
        assert server.n_requests == 4

    def test_nobody_answers(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        files = PaperFiles(f"http://127.0.0.1:{port}/", {FILE: "0"}, tmp_path)
        with pytest.raises(DownloadError, match=r"no connection to 127\.0\.0\.1") as caught:
            files.path("adult")
        assert "--data" in caught.value.hint

    def test_no_such_host(self, tmp_path):
        files = PaperFiles("http://nowhere.invalid/", {FILE: "0"}, tmp_path)
        with pytest.raises(DownloadError, match=r"no connection to nowhere\.invalid"):
            files.path("adult")

    def test_no_encryption(self, server, tmp_path):
        url = server.url.replace("http", "https")
        files = PaperFiles(url, {FILE: "0"}, tmp_path)
        with pytest.raises(DownloadError, match=r"no secure connection to 127\.0\.0\.1"):
            files.path("adult")

    def test_no_such_protocol(self, tmp_path):
        files = PaperFiles("gopher://127.0.0.1/", {FILE: "0"}, tmp_path)
        with pytest.raises(DownloadError, match="No connection adapters were found"):
            files.path("adult")

    def test_silence(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            files = PaperFiles(url, {FILE: "0"}, tmp_path, retries=1, timeout=0.05)
            with pytest.raises(DownloadError, match=r"no answer within 0\.05 s"):
                files.path("adult")

    def test_cache_that_cannot_be_made(self, server, tmp_path):
        (tmp_path / "file").write_text("not a folder")
        files = PaperFiles(server.url, {FILE: sha256(CONTENT)}, tmp_path / "file" / "cache")
        with pytest.raises(DownloadError, match=f"cannot store {FILE} in") as caught:
            files.path("adult")
        assert "VARCAL_CACHE" in caught.value.hint

    def test_without_pooch(self, files, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        with pytest.raises(
            MissingDependencyError, match=f"downloading {FILE} needs pooch"
        ) as error:
            files.path("adult")
        assert "'reproduce'" in error.value.hint


class TestFolder:
    @pytest.fixture
    def store(self, tmp_path):
        return PaperFiles("", {FILE: sha256(b"a,b\n1,2\n")}, tmp_path)

    @pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"a,b\r\n1,2\r\n"])
    def test_plain_or_gzipped(self, store, tmp_path, content):
        (tmp_path / FILE).write_bytes(content)
        assert store.path("adult", tmp_path) == tmp_path / FILE
        (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(content))
        assert store.path("adult", str(tmp_path)) == tmp_path / f"{FILE}.gz"

    def test_the_valid_one_of_two_files(self, store, tmp_path):
        (tmp_path / FILE).write_bytes(b"a,b\n1,2\n")
        (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(b"another"))
        assert store.path("adult", tmp_path) == tmp_path / FILE

    def test_refusals(self, store, tmp_path):
        with pytest.raises(InputError, match=f"has neither {FILE} nor {FILE}.gz") as caught:
            store.path("adult", tmp_path)
        assert str(tmp_path) in caught.value.message and "--data" in caught.value.hint
        with pytest.raises(InputError, match="no folder"):
            store.path("adult", tmp_path / FILE)
        (tmp_path / FILE).write_bytes(b"another")
        with pytest.warns(VarcalWarning, match=f"is not the authors' file.*{sha256(b'another')}"):
            assert store.path("adult", tmp_path) == tmp_path / FILE
        (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(CONTENT)[:1000])
        with pytest.raises(InputError, match="cannot unzip"):
            store.path("adult", tmp_path)

    def test_unknown_name(self):
        with pytest.raises(InputError, match="name must be one of 'adult'") as caught:
            paper_file("adlt")
        assert caught.value.hint == "did you mean 'adult'?"

    @pytest.mark.parametrize("name", ["adult", "bank", "cardio", "cifar"])
    def test_the_papers_own(self, paper_data, name):
        path = paper_file(name, paper_data)
        assert content_sha256(path) == REGISTRY[f"{name}_out.csv"]
