"""What a table's flash holds against the build that this program has: asked by a challenge, compared file by file.

It finds what got lost, was changed, added or never copied; at a table with keys also an answer that is not this
table's own, or not to this challenge. It is no proof against a firmware that was written to lie: such a one can keep a
true copy to hash.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dragoneye.installed import keyed_hash, row_bytes
from host_tools.configuration import BOARD_FILE, CONFIG_FILE
from host_tools.flash_build import MANIFEST, Build
from host_tools.flash_plan import SLOTS
from host_tools.i18n import _
from host_tools.link import Link, LinkError, Message, Refused

SAME, CHANGED, MISSING, ADDED, SPARE, UNKNOWN = "same", "changed", "missing", "added", "spare", "unknown"
# What makes a table another than the build.
WRONG = (CHANGED, MISSING, ADDED)
POLL_S = 0.1
SURVEY_S = 60.0

Row = tuple[str, int, str]


@dataclass
class Survey:
    """A table's answer: `root` is the folder that its firmware runs from, `mpy` what it runs; `rows` are fetched when
    they are needed. `seed` is what it was hashed under: at a table with keys a secret, made of the one that was sent.
    """

    seed: str = field(repr=False)
    root: str
    mpy: int
    files: int
    total: str
    rows: list[Row] = field(default_factory=list)


def ask(link: Link) -> Survey:
    """Let the table hash its files under a new seed. Raises LinkError when it cannot."""
    seed = secrets.token_hex(16)
    try:
        answer = link.request("verify", seed=seed)
    except Refused as refused:
        if refused.code == "E_UNKNOWN":
            words = _("the table's firmware is too old to be verified (protocol {major}.{minor}); tablectl flash")
            told = link.table
            raise LinkError(words.format(major=told.get("major"), minor=told.get("minor"))) from None
        raise
    end = link.transport.now() + SURVEY_S
    while answer["running"]:
        if link.transport.now() >= end:
            raise LinkError(_("the table has not ended verifying within {seconds:.0f} s").format(seconds=SURVEY_S))
        link.poll(POLL_S)
        answer = link.request("verify")
    if answer["why"] is not None:
        raise LinkError(_("the table could not verify its files: {why}").format(why=answer["why"]))
    return Survey(link.challenge(seed), answer["root"], answer["mpy"], answer["files"], answer["hash"])


def fetch_rows(link: Link, survey: Survey) -> None:
    """Fetch each file's hash. Raises LinkError when they are not those that the hash over all is of."""
    while len(survey.rows) < survey.files:
        answer: Message = link.request("verify", first=len(survey.rows))
        if not answer.get("rows"):
            raise LinkError(_("another program has begun to verify this table"))
        survey.rows += [(row[0], row[1], row[2]) for row in answer["rows"]]
    if total_of(survey.seed, survey.rows) != survey.total:
        raise LinkError(_("the table's list of files does not fit the hash that it gave before"))


def row_of(seed: str, path: str, content: bytes) -> Row:
    """What the table must answer for a file."""
    key = seed.encode()
    inner = hashlib.sha256(key + path.encode() + b"\0" + content).digest()
    return path, len(content), keyed_hash(key, inner)


def total_of(seed: str, rows: Iterable[Row]) -> str:
    """The hash over all files."""
    whole = hashlib.sha256(seed.encode())
    for row in rows:
        whole.update(row_bytes(*row))
    return whole.digest()[:16].hex()


def expected(build: Build, root: str, configuration: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that a table has whose firmware, as copied by `tablectl flash`, runs from `root`."""
    files = {f"/{name}": data for name, data in {**build.root, **configuration}.items()}
    files.update({root + name: data for name, data in build.slot.items()})
    if root.strip("/") in SLOTS:
        files[root + MANIFEST] = build.manifest
    return files


def is_expected(survey: Survey, files: Mapping[str, bytes]) -> bool:
    """Whether the table holds these files and no other."""
    rows = [row_of(survey.seed, path, files[path]) for path in sorted(files)]
    return total_of(survey.seed, rows) == survey.total


def compare(survey: Survey, build: Build, configuration: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """(path, verdict) of each file that the table has or should have, in order of path."""
    wanted = expected(build, survey.root, configuration)
    sources = {survey.root + name: data for name, data in build.sources.items()}
    verdicts = {}
    for row in survey.rows:
        path = row[0]
        allowed = [files[path] for files in (wanted, sources) if path in files]
        if any(row_of(survey.seed, path, content) == row for content in allowed):
            verdicts[path] = SAME
        elif allowed:
            verdicts[path] = CHANGED
        else:
            verdicts[path] = _unasked(survey, build, row)
    compiled = {path[:-4] for path in verdicts if path.endswith(".mpy")}
    plain = {path[:-3] for path, verdict in verdicts.items() if path.endswith(".py") and verdict == SAME}
    for path in wanted:
        stem = path.rpartition(".")[0]
        # A module may be there as its source, copied by hand; then it has no build to name either.
        there = path in verdicts or (path.endswith(".mpy") and stem in plain)
        if not there and not (path.endswith("/build.txt") and not compiled):
            verdicts[path] = MISSING
    return sorted(verdicts.items())


def _unasked(survey: Survey, build: Build, row: Row) -> str:
    """The verdict on a file that the build does not have there."""
    path = row[0]
    if path in (f"/{CONFIG_FILE}", f"/{BOARD_FILE}", "/dice.json"):
        return UNKNOWN
    for slot in SLOTS:
        top = f"/{slot}/"
        if path.startswith(top) and top != survey.root:
            files = {**build.slot, MANIFEST: build.manifest}
            content = files.get(path[len(top) :])
            if content is not None and row_of(survey.seed, path, content) == row:
                return SAME
            # One that says it is this build must be it; another one may be what it likes.
            if row_of(survey.seed, top + MANIFEST, build.manifest) not in survey.rows:
                return SPARE
            return ADDED if content is None else CHANGED
    if path.endswith((".py", ".mpy")) or (survey.root != "/" and path.startswith(survey.root)):
        return ADDED
    return UNKNOWN
