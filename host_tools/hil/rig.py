"""The rig file: what a bench has to move a table's parts, a command or a person for each action.

See tests/table/rig.example.toml. The schema is made of `capabilities`; `load` names everything that is wrong.
"""

from __future__ import annotations

import shlex
import string
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from dragoneye.errors import BadInput
from dragoneye.text import show
from host_tools import configuration, table_file
from host_tools.configuration import ConfigError, Problem
from host_tools.hil.capabilities import CAPABILITIES, CONFIG, Capability
from host_tools.i18n import _

FORMAT = 1
ASK = "ask"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _section(name: str, capability: Capability) -> Any:
    fields: dict[str, Any] = {}
    for action in capability.actions:
        spare = action in capability.spare
        fields[action] = (str | None if spare else str, Field(None if spare else ..., min_length=1, max_length=1000))
    return create_model(name.title(), __base__=_Section, **fields)


_SECTIONS: dict[str, Any] = {
    name: (_section(name, capability) | None, Field(default=None)) for name, capability in CAPABILITIES.items()
}


class _Rig(_Section):
    format: int = Field(ge=1, le=FORMAT)
    name: str = Field(default="bench", min_length=1, max_length=60, pattern=configuration.PRINTABLE)
    # May the suite write configurations of its own to the board? The board's own is put back.
    configure: bool = False
    # Where the table's records go; default: the record that `tablectl` uses.
    record: str | None = Field(default=None, min_length=1, max_length=1000)
    # Seconds that a command may take.
    timeout_s: int = Field(default=60, ge=1, le=600)


RigModel: Any = create_model("Rig", __base__=_Rig, **_SECTIONS)


class Rig:
    """A checked rig file; `Rig()` is a bench with nothing but the serial port."""

    def __init__(self, data: dict[str, Any] | None = None, path: Path | None = None) -> None:
        self._model = RigModel.model_validate(data if data is not None else {"format": FORMAT})
        self.path = path
        self.name: str = self._model.name
        self.configure: bool = self._model.configure
        self.timeout_s: int = self._model.timeout_s

    @property
    def record(self) -> Path | str | None:
        """Where the records go: a URL, or a path beside the rig file."""
        named: str | None = self._model.record
        if named is None or "://" in named or self.path is None:
            return named
        return self.path.parent / named

    def command(self, capability: str, action: str) -> str | None:
        """The command of an action, ASK, or None where nothing of the bench does it."""
        section = getattr(self._model, capability)
        if section is None:
            return None
        spare = CAPABILITIES[capability].spare.get(action)
        command: str | None = getattr(section, action)
        return getattr(section, spare) if command is None and spare else command

    def lacks(self, capability: str, interactive: bool) -> str | None:
        """Why a test that needs this cannot run here, or None."""
        where = self.path or _("no rig file")
        if capability == CONFIG:
            return (
                None if self.configure else _("config: no configuration may be written ({where})").format(where=where)
            )
        if capability not in CAPABILITIES:
            return _("{need}: only a virtual table has it").format(need=capability)
        if interactive:
            return None
        commands = {self.command(capability, action) for action in CAPABILITIES[capability].actions}
        if None in commands:
            return _("{need}: nothing of this bench does it ({where})").format(need=capability, where=where)
        if ASK in commands:
            return _("{need}: asks the person at the bench; run with --interactive").format(need=capability)
        return None


def _placeholders(command: str) -> list[str]:
    """The names between braces. Raises ValueError for braces that do not fit."""
    return [name for _text, name, _format, _conversion in string.Formatter().parse(command) if name is not None]


def _command_problems(data: dict[str, Any]) -> list[Problem]:
    problems = []
    for name, capability in CAPABILITIES.items():
        section = data.get(name)
        for action, command in section.items() if isinstance(section, dict) else ():
            if action not in capability.actions or not isinstance(command, str):
                continue
            key, allowed = f"{name}.{action}", capability.actions[action]
            try:
                unknown = sorted(set(_placeholders(command)) - set(allowed))
                if not shlex.split(command):
                    unknown = [command]
            except ValueError as error:
                why = _("{key} is {value}: {error}").format(key=key, value=show(command), error=error)
                problems.append(Problem(key, command, why))
                continue
            if unknown:
                words = _("{key} is {value}: there is nothing for {unknown}; allowed between braces: {allowed}")
                why = words.format(
                    key=key,
                    value=show(command),
                    unknown=", ".join(f"{{{one}}}" for one in unknown),
                    allowed=", ".join(allowed) or _("nothing"),
                )
                problems.append(Problem(key, command, why))
    return problems


def load(path: Path) -> Rig:
    """The rig file at `path`. Raises BadInput, ConfigError with everything that is wrong."""
    if not path.is_file():
        raise BadInput(_("{path}: there is no such rig file").format(path=path))
    data = table_file.parse(table_file.read(path), str(path)).unwrap()
    problems = [problem for _keys, problem in configuration.schema_problems(data, RigModel)] or _command_problems(data)
    if problems:
        raise ConfigError(str(path), problems)
    return Rig(data, path)
