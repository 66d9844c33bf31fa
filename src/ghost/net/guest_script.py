"""One script that tells the inside of a Linux machine, for run-command, and its reader.

It is constant, and reads only. Azure shows the last 4,096 bytes of each of its two streams, so what is most often
needed is printed last; a part whose beginning is missing counts as not read.
https://learn.microsoft.com/azure/virtual-machines/run-command-overview
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ghost.net.guest_reading import COMMANDS, read_guest
from ghost.net.resources import Guest

STREAMS: Final = {"": ("ip6tables", "nft", "udp", "tcp", "forwarding"), " >&2": ("routes", "iptables", "rules")}
"""Where each part is printed, in this order."""
PART: Final = re.compile(r"^----- begin (\w+) -----\n(.*?)^----- end \1: (\d+) -----$", re.MULTILINE | re.DOTALL)
"""No process has a name as long as these lines."""
NOT_INSTALLED: Final = "127"
FILTERS: Final = ("nft", "iptables", "ip6tables")
TOGETHER: Final = (("tcp", "udp"), ("routes", "rules"))
"""Parts of which one alone would mislead."""
GUEST_SCRIPT: Final = tuple(
    f"echo ----- begin {name} -----{stream}; {COMMANDS[name]}{stream} 2>/dev/null; "
    f"echo ----- end {name}: $? -----{stream}"
    for stream, names in STREAMS.items()
    for name in names
)
"""Without quotes inside, so that a person who is asked can read it."""


@dataclass(frozen=True)
class Inside:
    """What the output of the script tells of a guest."""

    guest: Guest
    unknown: tuple[str, ...] = ()
    """What of it is not known, with the reason."""
    part_of_filter: Guest | None = None
    """With those rules of the packet filter that could be read, where not all could: only what they drop is certain."""


def read_inside(machine: str, answer: Any, reference: str, *, six: bool) -> Inside | None:
    """Return a guest from what `az vm run-command invoke` with the script answered; None if that is not of the script.

    `six`: whether the filter of IPv6 decides too.
    """
    statuses = answer.get("value") if isinstance(answer, dict) else None
    rows = [row for row in statuses if isinstance(row, dict)] if isinstance(statuses, list) else []
    message = "\n".join(str(row.get("message") or "") for row in rows)
    found = {name: (text, status) for name, text, status in PART.findall(message) if name in COMMANDS}
    texts = {name: text for name, (text, status) in found.items() if status == "0"}
    unknown = {name: _why_unknown(name, found, message) for name in COMMANDS if name not in texts}
    if not texts and not any(f"----- end {name}" in message for name in COMMANDS):
        return None
    for name in list(texts):
        try:
            read_guest(machine, {name: texts[name]})
        except (ValueError, RecursionError) as error:
            unknown[name] = f"not in the expected format ({str(error)[:80]})"
            del texts[name]
    for parts in TOGETHER:
        if not texts.keys() >= set(parts):
            for name in parts:
                texts.pop(name, None)
    deciding = FILTERS if six else FILTERS[:2]
    absent = {name for name in deciding if unknown.get(name) == NOT_INSTALLED}
    missing = {name: why for name, why in unknown.items() if name not in absent and (six or name != "ip6tables")}
    whole = read_guest(machine, texts, reference)
    has_part = whole.packet_filter is not None and bool(missing.keys() & set(deciding))
    if absent == set(deciding):
        missing |= dict.fromkeys(("nft", "iptables"), "not installed")
    said = tuple(
        f"{COMMANDS[name]} {'not installed' if why == NOT_INSTALLED else why}" for name, why in missing.items()
    )
    return Inside(replace(whole, packet_filter=None) if has_part else whole, said, whole if has_part else None)


def _why_unknown(name: str, found: Mapping[str, tuple[str, str]], message: str) -> str:
    if name in found:
        status = found[name][1]
        return NOT_INSTALLED if status == NOT_INSTALLED else f"ended with status {status}"
    cut = f"----- end {name}" in message
    return "printed more than run-command shows" if cut else "is not in what run-command shows"
