"""A PostgreSQL server of our own: on loopback, in a temporary folder, run by an ordinary user."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path


def program(name):
    """Return the path of a program of PostgreSQL, None where it is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = [folder / name for folder in folders if (folder / name).is_file()]
    return str(found[0]) if found else shutil.which(name)


def ordinary_user():
    """Return the prefix of a command that runs as an ordinary user, and its user and group.

    PostgreSQL refuses to be run by root.
    """
    if os.getuid():
        return [], None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        ids = ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
        return ["setpriv", *ids], (user.pw_uid, user.pw_gid)
    return [], None


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def server():
    """Start a server in a new folder, yield the arguments of a connection, and stop it."""
    prefix, owner = ordinary_user()
    # Not in a folder of pytest, which nobody else may read.
    with tempfile.TemporaryDirectory(prefix="varcal-postgres-") as folder:
        if owner:
            os.chown(folder, *owner)
        with _running(Path(folder) / "data", prefix) as arguments:
            yield arguments


@contextmanager
def _running(data, prefix):
    def run(*command):
        subprocess.run([*prefix, *command], check=True, capture_output=True, cwd="/")

    options = ["--auth=trust", "--username=varcal", "--encoding=UTF8", "--no-locale", "--no-sync"]
    run(program("initdb"), "-D", str(data), *options)
    port = free_port()
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    run(program("pg_ctl"), "-D", str(data), "-o", settings, "-l", str(data / "log"), "-w", "start")
    try:
        yield {"host": "127.0.0.1", "port": port, "user": "varcal", "dbname": "postgres"}
    finally:
        run(program("pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
