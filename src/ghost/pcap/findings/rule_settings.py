"""The numbers and words that rules use, from the files beside this one."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from ghost.pcap.findings.finding import Remedy

_HERE = Path(__file__).parent
_PLACEHOLDER = re.compile(r"(?<!%)\{(?P<bracket>\[)?(?P<name>\w+)\]?\}")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})")


@cache
def _table(file: str) -> dict[str, Any]:
    return tomllib.loads((_HERE / file).read_text(encoding="utf-8"))


def threshold(key: str) -> float:
    """The value of `section.name` in thresholds.toml; `KeyError` where there is none."""
    section, name = key.split(".")
    value: int | float = _table("thresholds.toml")[section][name]["value"]
    return value


def ports_of(kind: str) -> list[int]:
    """The server ports of a kind of protocol in protocols.toml; `KeyError` where there is none."""
    ports: list[int] = _table("protocols.toml")[kind]["ports"]
    return ports


def cause_of(advice: str) -> str:
    text: str = _table("advice.toml")[advice]["cause"]
    return text


def remediation_of(advice: str, **values: object) -> tuple[Remedy, ...]:
    """The commands of one kind with addresses, ports and names filled in.

    Values come from packets, so what is no plain address, number or host name stays a placeholder in capitals:
    nothing that a stranger sent becomes part of a command somebody pastes.
    """
    safe = {key: _plain(key, value) for key, value in values.items() if value is not None}
    return tuple(
        Remedy(_fill(command, safe, quote=True), _fill(host, safe, quote=False))
        for host, command in _table("advice.toml")[advice]["remediation"]
    )


def _plain(key: str, value: object) -> str:
    text = str(value)
    return text if _PLAIN_NAME.fullmatch(text) or re.fullmatch(r"[0-9a-fA-F:.]+", text) else key.upper()


def _fill(template: str, values: dict[str, str], *, quote: bool) -> str:
    """`{dst}` as it is; `{[dst]}` where an IPv6 address must stand in brackets. A `%{...}` belongs to the command."""

    def value_of(match: re.Match[str]) -> str:
        name = match["name"]
        value = values.get(name, name.upper())
        if match["bracket"] and ":" in value:
            value = f"[{value}]"
        within_quotes = template.count("'", 0, match.start()) % 2
        return shlex.quote(value) if quote and not within_quotes else value

    return _PLACEHOLDER.sub(value_of, template)
