"""A PostgreSQL server of the tests' own, started where its binaries are installed; it has no port, only a socket."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# The server refuses to run as root: then it runs as this user.
USER = "nobody"


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`, or None."""
    found = [Path(which).parent for which in [shutil.which("initdb")] if which]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((one for one in found if (one / "initdb").exists() and (one / "postgres").exists()), None)


def _as_user() -> dict[str, object]:
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam(USER)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A running server; gives the URL of its database. Raises RuntimeError with a reason when it cannot be started."""
    where = binaries()
    if where is None:
        raise RuntimeError("no PostgreSQL server is installed (initdb, postgres)")
    rights = _as_user()
    # Not below pytest's folder: that one is closed to other users.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        if rights:
            os.chown(folder, int(str(rights["user"])), int(str(rights["group"])))
        data = f"{folder}/data"
        try:
            made = subprocess.run(
                [str(where / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
                capture_output=True, text=True, cwd=folder, **rights,  # type: ignore[call-overload]
            )  # fmt: skip
        except OSError as error:
            raise RuntimeError(f"initdb cannot be run: {error}") from None
        if made.returncode:
            raise RuntimeError(f"initdb: {made.stderr.strip()[-300:]}")
        process = subprocess.Popen(
            [str(where / "postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **rights,  # type: ignore[call-overload]
        )  # fmt: skip
        try:
            end = time.monotonic() + 60
            while not list(Path(folder).glob(".s.PGSQL.*")) or "ready" not in _status(data):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("postgres does not start")
                time.sleep(0.05)
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            process.terminate()
            process.wait(30)


def _status(data: str) -> str:
    with contextlib.suppress(OSError):
        return Path(data, "postmaster.pid").read_text()
    return ""
