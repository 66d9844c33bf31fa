"""What to do about a fault: the `az` commands that mend it, or one sentence where there are none."""

from __future__ import annotations

from ghost.net import Fault, commands_for, known_kinds, name_of

__all__ = ["advice_for", "commands_for"]


def advice_for(fault: Fault) -> tuple[str, ...]:
    """Return what mends a fault of this kind, with the resource and the rule or route that decides."""
    kind = known_kinds().get(fault.kind)
    if kind is None:
        return ()
    rule = f", {fault.hop.rule}" if fault.hop.rule else ""
    return (f"{kind.mend[:1].upper()}{kind.mend[1:]} ({name_of(fault.hop.resource)}{rule}).",)
