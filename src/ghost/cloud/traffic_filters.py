"""Filters of a packet capture: a five-tuple in words, or az's JSON.

Azure takes for addresses and ports one value, a range (`10.0.0.1-10.0.0.9`, `80-85`), or several with `;`:
https://learn.microsoft.com/rest/api/network-watcher/packet-captures/create#packetcapturefilter
"""

from __future__ import annotations

import json
import re
from ipaddress import ip_address
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ghost.errors import UsageError
from ghost.text import one_line

MAX_FILTERS = 5
_WORDS = ("protocol", "local_addresses", "local_ports", "remote_addresses", "remote_ports")
_FORM = "PROTOCOL LOCAL LOCAL-PORT REMOTE REMOTE-PORT with * for any, such as 'tcp * * 10.20.2.5 6379', or az's JSON"
# With anonymisation on, the shell gives placeholders and maps them back.
_HIDDEN = re.compile(r"\[[A-Z_]{1,40}_[0-9]{1,9}\]")


class CaptureFilter(BaseModel):
    """One filter; a packet is captured if one of them matches. An empty text matches all."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    protocol: str = "Any"
    local_addresses: str = Field("", alias="localIPAddress")
    local_ports: str = Field("", alias="localPort")
    remote_addresses: str = Field("", alias="remoteIPAddress")
    remote_ports: str = Field("", alias="remotePort")

    @field_validator("protocol")
    @classmethod
    def _known(cls, text: str) -> str:
        for known in ("TCP", "UDP", "Any"):
            if text.upper() == known.upper():
                return known
        raise ValueError("the protocol is TCP, UDP or Any")

    @field_validator("local_addresses", "remote_addresses")
    @classmethod
    def _addresses(cls, text: str) -> str:
        for item in _items(text):
            ends = [ip_address(end.strip()) for end in item.split("-") if not _HIDDEN.fullmatch(end)]
            if len(item.split("-")) > 2 or (len(ends) == 2 and ends[0].version != ends[1].version):
                raise ValueError(f"{item} is not a range of addresses")
        return text

    @field_validator("local_ports", "remote_ports")
    @classmethod
    def _ports(cls, text: str) -> str:
        for item in _items(text):
            low, _, high = item.partition("-")
            if not (low.isdecimal() and (high or low).isdecimal() and int(low) <= int(high or low) <= 65535):
                raise ValueError(f"{item} is neither a port nor a range of ports")
        return text

    @property
    def fields(self) -> dict[str, str]:
        """The filter as az takes it, without what matches all."""
        return {name: value for name, value in self.model_dump(by_alias=True).items() if value}

    @property
    def mirrored(self) -> Self:
        """The same traffic seen from the other end."""
        there, here = (self.remote_addresses, self.remote_ports), (self.local_addresses, self.local_ports)
        names = ("local_addresses", "local_ports", "remote_addresses", "remote_ports")
        return self.model_copy(update=dict(zip(names, (*there, *here), strict=True)))


def capture_filters(given: object) -> tuple[CaptureFilter, ...]:
    """Return the filters in a text (several five-tuples are separated by `,`) or in az's list. Raises `UsageError`."""
    if given is None or given == "" or given == []:
        return ()
    rows = given
    if isinstance(given, str):
        rows = _parsed(given.strip())
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_FILTERS:
        raise UsageError(f"filters are 1 to {MAX_FILTERS} of the form {_FORM}")
    try:
        return tuple(CaptureFilter.model_validate(row) for row in rows)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        where = ".".join(map(str, first["loc"])) or "a filter"
        why = one_line(f"{where}: {first['msg']}", 200)
        raise UsageError(f"the capture filter is not usable ({why}): give {_FORM}") from None


def as_json(filters: tuple[CaptureFilter, ...]) -> str:
    return json.dumps([each.fields for each in filters], separators=(",", ":"))


def _parsed(text: str) -> Any:
    if text.startswith(("[", "{")) and not _HIDDEN.match(text):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise UsageError(f"the capture filter is not JSON: give {_FORM}") from None
        return found if isinstance(found, list) else [found]
    tuples = [part.split() for part in text.split(",")]
    if not all(1 <= len(words) <= len(_WORDS) for words in tuples):
        raise UsageError(f"the capture filter {one_line(text, 80)!r} is not of the form {_FORM}")
    return [{n: word for n, word in zip(_WORDS, words, strict=False) if word != "*"} for words in tuples]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(";") if item.strip()]
