"""Changes defined in `changes.toml`: a resource is created, or read, changed and put back, as the CLI does."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import GROUP, NAME, Answer, attribute, command
from ghost.lab.az_cli.output_shape import flattened
from ghost.lab.directory import LabDirectory
from ghost.policy import load_policy

_MARKS = {"list": "*", "plural": "*", "ids": "*", "services": "*", "bool": "~"}
_BOOLS = {"true": True, "t": True, "yes": True, "y": True, "1": True}
_BOOLS |= {"false": False, "f": False, "no": False, "n": False, "0": False}
NULL = ("null", "")
Change = Callable[[ArmClient, str, Namespace, "list[Setting]"], Any]


class Setting(NamedTuple):
    """An option and the property that it sets."""

    names: str
    attribute: str
    field: str
    kind: str
    of: str
    default: str | None
    required: bool

    @classmethod
    def of_text(cls, text: str) -> Setting:
        words = text.split()
        names = [word for word in words if word.startswith("-")]
        place, *rest = words[len(names) :]
        name, _, kind = place.partition(":")
        kind, _, of = (kind or "text").partition("=")
        default = rest[0] if rest else None
        return cls(" ".join(names), attribute(names[0]), name, kind, of, default, default == "!")

    def option(self, verb: str) -> str:
        mark = _MARKS.get(self.kind, "") or ("!" if self.required and verb == "create" else "")
        return f"{self.names} {mark}".strip()


@dataclass(frozen=True)
class ChangeCommands:
    """A row of `changes.toml`."""

    command: str
    type: str
    parent: str | None = None
    verbs: str = "create update delete"
    options: tuple[str, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    confirmed: bool = False
    wrapped: str | None = None
    location: str | None = None

    def register(self) -> None:
        names = ("name",) if self.parent is None else (attribute(self.parent), "name")
        place = (GROUP, *(() if self.parent is None else (f"{self.parent} !",)), NAME, "--no-wait ?")
        settings = [Setting.of_text(text) for text in self.options]
        answers = {"create": self._create, "update": self._update, "delete": self._delete}
        for verb in self.verbs.split():
            own = [setting.option(verb) for setting in settings] if verb != "delete" else []
            own += ["--remove *", "--set *", "--add *"] if verb == "update" else []
            own += ["--location -l", "--tags *"] if self.location == "option" and verb == "create" else []
            own += ["--yes -y ?"] if self.confirmed and verb == "delete" else []
            ids = () if verb == "create" else names
            command(f"{self.command} {verb}", *place, *own, ids=ids)(self._answer(answers[verb], names, settings))

    def _answer(self, change: Change, names: tuple[str, ...], settings: list[Setting]) -> Answer:
        def answer(lab: LabDirectory, options: Namespace) -> Any:
            client = ArmClient(lab)
            path = client.path(options.resource_group, self.type, *(getattr(options, name) for name in names))
            return change(client, path, options, settings)

        return answer

    def _create(self, client: ArmClient, path: str, options: Namespace, settings: list[Setting]) -> Any:
        properties = dict(self.fixed)
        for setting in settings:
            given = getattr(options, setting.attribute)
            if given is None and setting.default is not None and not setting.required:
                given = [setting.default] if _MARKS.get(setting.kind) == "*" else setting.default
            if given is not None:
                _set(properties, setting, _value(client, setting, options, given))
        location = options.location if self.location == "option" else self.location
        made = flattened(client.put(path, {"properties": properties, **({"location": location} if location else {})}))
        return made if self.wrapped is None else {self.wrapped: made}

    def _update(self, client: ArmClient, path: str, options: Namespace, settings: list[Setting]) -> Any:
        if options.add:
            raise AzError("--add is not simulated: use the option of the property.")
        body = client.get(path)
        for setting in settings:
            given = getattr(options, setting.attribute)
            if given is not None:
                _set(body["properties"], setting, _value(client, setting, options, given))
        for name in options.remove or ():
            if body["properties"].pop(name, None) is None:
                raise AzError(f"Couldn't find '{name}' in ''.")
        for text in options.set or ():
            name, _, value = text.partition("=")
            if "." in name or "[" in name:
                raise AzError("--set of a field within another is not simulated: use the option of the property.")
            body["properties"][name] = _literal(value)
        return flattened(client.put(path, body))

    def _delete(self, client: ArmClient, path: str, options: Namespace, _settings: list[Setting]) -> None:
        if self.confirmed and not options.yes:
            raise AzError("Operation cancelled.")
        client.delete(path)


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _value(client: ArmClient, setting: Setting, options: Namespace, given: Any) -> Any:
    if given in NULL or given == ["null"]:
        return None
    match setting.kind:
        case "int":
            if not given.isdecimal():
                raise AzError(f"Failed to parse '{setting.names.split()[0]}' argument: invalid int value: '{given}'")
            return int(given)
        case "bool":
            if given.casefold() not in _BOOLS:
                raise AzError(f"Failed to parse '{setting.names.split()[0]}' argument: '{given}' is no boolean")
            return _BOOLS[given.casefold()]
        case "id":
            return {"id": _reference(client, setting, options, given)}
        case "ids":
            return [{"id": _reference(client, setting, options, each)} for each in given]
        case "services":
            return [{"service": each} for each in given]
        case _:
            return given


def _reference(client: ArmClient, setting: Setting, options: Namespace, given: str) -> str:
    """Return the id of a resource that an option gives by id, or by its name in the command's group."""
    if given.startswith("/"):
        return given
    owner, _, part = setting.of.partition("/{parent}/")
    if part:
        return client.path(options.resource_group, f"{owner}/{part}", options.lb_name, given)
    return client.path(options.resource_group, owner, given)


def _set(properties: dict[str, Any], setting: Setting, value: Any) -> None:
    """Set a property; a single value of a plural one stands in the singular field."""
    if setting.kind != "plural":
        properties[setting.field] = value
    else:
        singular = (
            setting.field.removesuffix("es") if setting.field.endswith("xes") else setting.field.removesuffix("s")
        )
        many = value is not None and len(value) > 1
        properties.pop(singular, None)
        properties[setting.field] = value if many else []
        if value and not many:
            properties[singular] = value[0]
    if setting.field == "backendAddressPools":
        properties.pop("backendAddressPool", None)
    if value is None:
        properties.pop(setting.field, None)


for _row in load_policy(__file__, "changes.toml", dict[str, tuple[ChangeCommands, ...]])["changes"]:
    _row.register()
