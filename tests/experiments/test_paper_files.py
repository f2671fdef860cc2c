"""The paper's files: found, checked, and downloaded from a real server that misbehaves."""

import gzip
import hashlib
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from varcal.exceptions import DownloadError, InputError, VarcalWarning
from varcal.experiments._paper_files import REGISTRY, PaperFiles, content_sha256, paper_file
from varcal.experiments._resuming_download import ResumingDownload

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
OTHER = bytes(reversed(CONTENT))
FILE = "adult_out.csv"
QUICK = {"wait": 0.001, "timeout": 5.0}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serve `content` with ranges, but for what the server's plan says of this request."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        plan, server = self.server.next_plan(), self.server
        server.asked.append(dict(self.headers))
        if status := plan.get("status"):
            self.send_error(status)
            return
        content = plan.get("content", server.content)
        etag = plan.get("etag", server.etag)
        start = 0
        asked = self.headers.get("Range")
        same = self.headers.get("If-Range") in (None, etag)
        if asked and same and not plan.get("ignore_range"):
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(206)
            first = start + plan.get("shift", 0)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if etag:
            self.send_header("ETag", etag)
        body = content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: plan.get("cut", len(body))])
        self.wfile.flush()
        if plan.get("stall"):
            self.server.stalled.wait(10)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.etag, self.plans, self.asked = CONTENT, '"one"', [], []
        self.stalled = threading.Event()

    def next_plan(self):
        """What to do at this request; the last plan holds for all that follow."""
        return self.plans.pop(0) if len(self.plans) > 1 else (self.plans or [{}])[0]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/data/"

    @property
    def ranges(self):
        return [headers.get("Range") for headers in self.asked]


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def files(server, tmp_path):
    return PaperFiles(server.url, {FILE: sha256(CONTENT)}, tmp_path / "cache", QUICK)


def names(files):
    return sorted(path.name for path in files.cache.iterdir())


class TestDownload:
    def test_once_then_from_the_cache(self, server, files):
        path = files.path("adult")
        assert path == files.cache / FILE and path.read_bytes() == CONTENT
        assert files.path("adult") == path
        assert server.ranges == [None]
        # Ranges of a compressed answer would count other bytes.
        assert server.asked[0]["Accept-Encoding"] == "identity"
        assert names(files) == [FILE]

    def test_a_spoilt_file_in_the_cache_is_fetched_again(self, files):
        files.path("adult").write_bytes(CONTENT[:100])
        assert files.path("adult").read_bytes() == CONTENT

    def test_goes_on_after_cuts(self, server, files):
        server.plans = [{"cut": 98_304}, {"cut": 49_152}, {}]
        assert files.path("adult").read_bytes() == CONTENT
        assert server.ranges == [None, "bytes=98304-", "bytes=147456-"]
        assert server.asked[1]["If-Range"] == '"one"'
        assert names(files) == [FILE]

    def test_many_cuts_are_fine_while_each_try_brings_something(self, server, files):
        server.plans = [{"cut": 20_480}]
        assert files.path("adult").read_bytes() == CONTENT
        assert len(server.asked) == 15

    def test_server_that_ignores_ranges(self, server, files):
        server.plans = [{"cut": 98_304}, {"ignore_range": True}]
        assert files.path("adult").read_bytes() == CONTENT
        assert server.ranges == [None, "bytes=98304-"]

    def test_server_that_ignores_ranges_and_always_cuts_is_given_up(self, server, files):
        server.plans = [{"ignore_range": True, "cut": 98_304}]
        with pytest.raises(DownloadError, match="the connection was cut"):
            files.path("adult")
        assert len(server.asked) == 6

    def test_another_version_under_way(self, server, files):
        """If-Range makes the server send all of the new version."""
        server.plans = [{"cut": 98_304, "content": OTHER, "etag": '"old"'}, {}]
        assert files.path("adult").read_bytes() == CONTENT
        assert server.asked[1]["If-Range"] == '"old"'

    @pytest.mark.parametrize("etag", ["", 'W/"weak"'])
    def test_another_version_that_no_tag_tells(self, server, files, etag):
        server.plans = [{"cut": 98_304, "content": OTHER, "etag": etag}, {"etag": etag}]
        assert files.path("adult").read_bytes() == CONTENT
        assert server.ranges == [None, "bytes=98304-", None]
        assert "If-Range" not in server.asked[1]

    def test_another_piece_than_was_asked_for(self, server, files):
        server.plans = [{"cut": 98_304}, {"shift": 1}, {}]
        assert files.path("adult").read_bytes() == CONTENT
        assert server.ranges == [None, "bytes=98304-", None]

    def test_silence_half_way(self, server, tmp_path):
        server.plans = [{"cut": 98_304, "stall": True}, {}]
        quick = {"wait": 0.001, "timeout": 0.3}
        files = PaperFiles(server.url, {FILE: sha256(CONTENT)}, tmp_path, quick)
        assert files.path("adult").read_bytes() == CONTENT
        server.stalled.set()
        assert server.ranges == [None, "bytes=98304-"]

    def test_always_another_piece_than_was_asked_for(self, server, files):
        server.plans = [{"cut": 98_304, "shift": 1}]
        with pytest.raises(DownloadError, match="another piece than was asked for"):
            files.path("adult")
        assert server.ranges == [None, "bytes=98304-", None, "bytes=98304-"]
        assert names(files) == []

    def test_passing_trouble(self, server, files):
        server.plans = [{"status": 503}, {"status": 500}, {}]
        assert files.path("adult").read_bytes() == CONTENT


class TestPieces:
    def test_a_later_call_goes_on_where_an_earlier_one_gave_up(self, server, files):
        server.plans = [{"cut": 98_304}, {"status": 500}]
        with pytest.raises(DownloadError, match="the server answered 500"):
            files.path("adult")
        assert names(files) == [f"{FILE}.part"]
        server.plans, server.asked = [], []
        assert files.path("adult").read_bytes() == CONTENT
        assert server.ranges == ["bytes=98304-"]
        assert names(files) == [FILE]

    @pytest.mark.parametrize(
        ("piece", "ranges"),
        [
            (OTHER[:1000], ["bytes=1000-", None]),  # of another version
            (CONTENT + b"more", ["bytes=300004-", None]),  # 416: too long
            (CONTENT, []),  # whole, though never renamed
            (b"", [None]),
        ],
    )
    def test_pieces_that_were_left(self, server, files, piece, ranges):
        files.cache.mkdir()
        (files.cache / f"{FILE}.part").write_bytes(piece)
        assert files.path("adult").read_bytes() == CONTENT
        assert server.ranges == ranges
        assert names(files) == [FILE]

    def test_cuts_after_a_piece_that_was_too_long(self, server, files):
        files.cache.mkdir()
        (files.cache / f"{FILE}.part").write_bytes(CONTENT + b"more")
        server.plans = [{"cut": 20_480}]
        assert files.path("adult").read_bytes() == CONTENT

    def test_many_at_once(self, server, files):
        files.cache.mkdir()
        (files.cache / f"{FILE}.part").write_bytes(CONTENT[:1000])
        server.plans = [{"cut": 61_440}]
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

    def test_an_interrupt_keeps_the_piece(self, server, tmp_path):
        code = (
            "import sys; from varcal.experiments._resuming_download import ResumingDownload;"
            "ResumingDownload(sys.argv[1], wait=60)(sys.argv[2], sys.argv[3])"
        )
        server.plans = [{"cut": 98_304}]
        draft = tmp_path / "draft"
        command = [sys.executable, "-c", code, sha256(CONTENT), server.url + FILE, str(draft)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not (draft.exists() and draft.stat().st_size == 98_304):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
        assert [path.name for path in tmp_path.iterdir()] == [f"{FILE}.part"]
        assert (tmp_path / f"{FILE}.part").read_bytes() == CONTENT[:98_304]


class TestRefusals:
    def test_wrong_bytes(self, server, files):
        server.content = OTHER
        with pytest.raises(DownloadError) as caught:
            files.path("adult")
        assert caught.value.message == (
            f"{server.url}{FILE} is not the file that is wanted: its sha256 is {sha256(OTHER)}, "
            f"expected {sha256(CONTENT)}"
        )
        assert caught.value.hint == f"get {FILE} by another way and name its folder with --data"
        assert names(files) == [] and len(server.asked) == 1

    def test_wrong_bytes_in_pieces_are_fetched_once_more_only(self, server, files):
        server.content, server.plans = OTHER, [{"cut": 98_304}, {}]
        with pytest.raises(DownloadError, match="is not the file that is wanted"):
            files.path("adult")
        assert server.ranges == [None, "bytes=98304-", None]
        assert names(files) == []

    @pytest.mark.parametrize("status", [403, 404])
    def test_not_there(self, server, files, status):
        server.plans = [{"status": status}]
        with pytest.raises(DownloadError, match=f"{FILE}: the server answered {status}") as caught:
            files.path("adult")
        assert "--data" in caught.value.hint
        assert len(server.asked) == 1 and names(files) == []

    def test_server_in_trouble(self, server, files):
        server.plans = [{"status": 500}]
        with pytest.raises(DownloadError, match="the server answered 500 Internal Server Error"):
            files.path("adult")
        assert len(server.asked) == 5

    def test_nobody_answers(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        files = PaperFiles(f"http://127.0.0.1:{port}/", {FILE: "0"}, tmp_path, QUICK)
        with pytest.raises(DownloadError, match=r"no connection to 127\.0\.0\.1") as caught:
            files.path("adult")
        assert "--data" in caught.value.hint

    def test_no_such_host(self, tmp_path):
        files = PaperFiles("http://nowhere.invalid/", {FILE: "0"}, tmp_path, QUICK)
        with pytest.raises(DownloadError, match=r"no connection to nowhere\.invalid"):
            files.path("adult")

    def test_no_encryption(self, server, tmp_path):
        url = server.url.replace("http", "https")
        files = PaperFiles(url, {FILE: "0"}, tmp_path, QUICK)
        with pytest.raises(DownloadError, match=r"no secure connection to 127\.0\.0\.1"):
            files.path("adult")

    def test_no_such_protocol(self, tmp_path):
        download = ResumingDownload("0", wait=0.0)
        with pytest.raises(DownloadError, match="No connection adapters were found"):
            download("gopher://127.0.0.1/x", str(tmp_path / "x"))

    def test_silence(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            quick = {"wait": 0.0, "timeout": 0.05, "attempts": 2}
            files = PaperFiles(url, {FILE: "0"}, tmp_path, quick)
            with pytest.raises(DownloadError, match=r"no answer within 0\.05 s"):
                files.path("adult")

    def test_cache_that_cannot_be_made(self, server, tmp_path):
        (tmp_path / "file").write_text("in the way")
        files = PaperFiles(server.url, {FILE: sha256(CONTENT)}, tmp_path / "file" / "cache")
        with pytest.raises(DownloadError, match=f"cannot keep {FILE} in") as caught:
            files.path("adult")
        assert "VARCAL_CACHE" in caught.value.hint


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

    def test_of_two_the_one_that_is_right(self, store, tmp_path):
        (tmp_path / FILE).write_bytes(b"a,b\n1,2\n")
        (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(b"another"))
        assert store.path("adult", tmp_path) == tmp_path / FILE

    def test_refusals(self, store, tmp_path):
        with pytest.raises(InputError, match=f"neither {FILE} nor {FILE}.gz is in") as caught:
            store.path("adult", tmp_path)
        assert str(tmp_path) in caught.value.message and "--data" in caught.value.hint
        with pytest.raises(InputError, match="no folder"):
            store.path("adult", tmp_path / FILE)
        (tmp_path / FILE).write_bytes(b"another")
        with pytest.warns(VarcalWarning, match=f"is not the authors' file.*{sha256(b'another')}"):
            assert store.path("adult", tmp_path) == tmp_path / FILE
        (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(CONTENT)[:1000])
        with pytest.raises(InputError, match="cannot unpack"):
            store.path("adult", tmp_path)

    def test_unknown_name(self):
        with pytest.raises(InputError, match="name must be one of 'adult'") as caught:
            paper_file("adlt")
        assert caught.value.hint == "did you mean 'adult'?"

    @pytest.mark.parametrize("name", ["adult", "bank", "cardio", "cifar"])
    def test_the_papers_own(self, paper_data, name):
        path = paper_file(name, paper_data)
        assert content_sha256(path) == REGISTRY[f"{name}_out.csv"]


def test_the_environment_names_the_cache(server, tmp_path, monkeypatch):
    monkeypatch.setenv("VARCAL_CACHE", str(tmp_path / "named"))
    files = PaperFiles(server.url, {FILE: sha256(CONTENT)}, settings=QUICK)
    assert files.path("adult") == tmp_path / "named" / FILE


def test_a_bar_only_on_a_terminal(server, tmp_path):
    code = (
        "import sys; from varcal.experiments._resuming_download import ResumingDownload;"
        "ResumingDownload(sys.argv[1])(sys.argv[2], sys.argv[3])"
    )
    command = [sys.executable, "-c", code, sha256(CONTENT), server.url + FILE, str(tmp_path / "x")]
    master, slave = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    assert subprocess.run(command, stderr=slave, env=env).returncode == 0
    os.close(slave)
    shown = b""
    try:
        while more := os.read(master, 4096):
            shown += more
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(master)
    assert f"downloading {FILE}" in shown.decode()
    quiet = subprocess.run(command, capture_output=True, check=True)
    assert not quiet.stderr


def test_the_hook_is_a_value():
    assert ResumingDownload("0", wait=1.0) == ResumingDownload("0", wait=1.0)
