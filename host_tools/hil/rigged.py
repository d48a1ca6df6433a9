"""A real table on a bench: its serial port, and the rig's commands or a person for all that no port can do."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from typing import Any, NoReturn

from boards.virtual.client import TableError
from dragoneye.errors import BadInput
from dragoneye.text import digest, show
from host_tools import configuration
from host_tools.board_files import BoardFiles
from host_tools.configuration import BOARD_FILE, CONFIG_FILE
from host_tools.hil.capabilities import CAPABILITIES, CONFIG, INSIDE, UNDONE_BY, asked, steps_of
from host_tools.hil.rig import ASK, Rig
from host_tools.i18n import _
from host_tools.link import Message

SKIP = "s"


class RigError(TableError):
    """A command of the rig failed; the text names it and what it said."""


class Rigged:
    """The table on `port`, on the bench that `rig` describes.

    `person(text)` shows a text to the person at the bench and returns the line that is typed; None when nobody is
    there. `unable(why)` ends the test: pytest.skip.
    """

    def __init__(
        self, port: str, rig: Rig, person: Callable[[str], str] | None, unable: Callable[[str], NoReturn]
    ) -> None:
        self._port = port
        self.rig = rig
        self._person = person
        self._unable = unable
        self._standing: dict[tuple[str, Any], tuple[str, str, Message]] = {}
        self._files: dict[str, bytes] | None = None

    @property
    def port(self) -> str:
        return self._port

    def lacks(self, need: str) -> str | None:
        """Why what a test needs cannot be had here, or None."""
        return self.rig.lacks(need, self._person is not None)

    def do(self, name: str, /, **args: Any) -> Message:
        """Do one thing to the table, or skip the test where the bench cannot."""
        try:
            steps = steps_of(name, args)
        except KeyError:
            self._unable(self.rig.lacks(INSIDE, False) or name)
        for capability, action, values in steps:
            self._act(capability, action, values)
        return {}

    def look(self, capability: str) -> str:
        """What is seen: one of the capability's answers."""
        answers = CAPABILITIES[capability].answers
        told = self._act(capability, "look", {})
        if told not in answers:
            words = _("{key} said {told}; allowed: {allowed}")
            raise RigError(words.format(key=f"{capability}.look", told=show(told), allowed=", ".join(answers)))
        return told

    def state(self) -> Message:
        """A real table does not show its inside."""
        self._unable(self.rig.lacks(INSIDE, False) or INSIDE)

    def _act(self, capability: str, action: str, values: Message) -> str:
        why = self.lacks(capability)
        if why is not None:
            self._unable(why)
        undo = UNDONE_BY.get((capability, action))
        key = (capability, values.get("name"))
        if undo is not None:
            # Before it is done: what fails halfway is put right as well.
            self._standing[key] = (capability, undo, values)
        command = self.rig.command(capability, action)
        told = self._ask(capability, action, values) if command in (None, ASK) else self._run(str(command), values)
        if undo is None:
            self._standing.pop(key, None)
        return told

    def _ask(self, capability: str, action: str, values: Message) -> str:
        assert self._person is not None
        answers = CAPABILITIES[capability].answers
        text = asked(capability, action, values)
        allowed = "/".join(answers) if answers else _("Enter when it is done")
        while True:
            question = _("{text} [{allowed}; {skip}: skip this test] ").format(text=text, allowed=allowed, skip=SKIP)
            told = self._person(question).strip().lower()
            if told == SKIP:
                self._unable(_("{need}: the person at the bench skipped it").format(need=capability))
            if told in (answers or ("",)):
                return told

    def _run(self, command: str, values: Message) -> str:
        filled = {key: ",".join(map(str, value)) if isinstance(value, list) else value for key, value in values.items()}
        words = [word.format_map(filled) for word in shlex.split(command)]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=self.rig.timeout_s, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RigError(f"{shlex.join(words)}: {error}") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise RigError(
                _("{command}: ended with {code}: {said}").format(
                    command=shlex.join(words), code=done.returncode, said=said[0] if said else _("nothing")
                )
            )
        return done.stdout.strip().lower()

    def undo(self) -> None:
        """End all that was done and still stands, the newest first."""
        while self._standing:
            _key, (capability, action, values) = self._standing.popitem()
            names = CAPABILITIES[capability].actions[action]
            self._act(capability, action, {key: value for key, value in values.items() if key in names})

    # --- its configuration ---------------------------------------------------------------------------------------

    def configure(self, told: Message, pack: str | None, more: Message | None) -> None:
        """Let the table run under this rule pack with these entries, or skip; `told` is its hello."""
        if not more and pack in (None, told["pack"]):
            return
        why = self.lacks(CONFIG)
        if why is not None:
            self._unable(why)
        with BoardFiles(self.port) as board:
            found = {name: board.read(name) for name in (BOARD_FILE, CONFIG_FILE)}
            files = {name: content for name, content in found.items() if content is not None}
            data, held = configuration.document_of(files, self.port)
            if pack not in (None, told["pack"]):
                data["rules"] = {"pack": pack}
            data.update(more or {})
            config, whole = configuration.check(data, self.port, held=held if pack in (None, told["pack"]) else None)
            if self._files is None:
                self._files = files
            files = configuration.device_files(config, whole)
            board.write(files)
            started = board.start(expected=True)
        self._check(started.told, files)

    def restore(self) -> None:
        """Put the board's own configuration back."""
        if self._files is None:
            return
        with BoardFiles(self.port) as board:
            board.write(self._files)
            started = board.start(expected=True)
        files, self._files = self._files, None
        self._check(started.told, files)

    def _check(self, told: Message | None, files: dict[str, bytes]) -> None:
        if told is None or told.get("config_hash") != digest(files[CONFIG_FILE]):
            raise BadInput(_("{port}: the table does not run with what was written").format(port=self.port))
