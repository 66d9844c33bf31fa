"""What may stand in a command as a name. A target, a group or an account is text that someone else chose.

Azure's rules: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
No name that passes begins with `-`, so none can be taken for an option; none holds a space, a quote or a control
character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime

from ghost.errors import UsageError

CAPTURE_NAME_LIMIT = 80

_SEGMENT = r"[A-Za-z0-9_(](?:[A-Za-z0-9_.()-]*[A-Za-z0-9_)-])?"
_RESOURCE_ID = re.compile(
    r"/subscriptions/(?P<subscription>[0-9A-Za-z-]{1,64})/resourceGroups/(?P<group>[^/]{1,90})"
    rf"/providers/(?P<namespace>[A-Za-z][A-Za-z0-9.]{{1,99}})(?P<path>(?:/{_SEGMENT}/{_SEGMENT})+)",
    re.IGNORECASE,
)
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
_CAPTURE_NAME = _RESOURCE_NAME
# Azure's accounts hold no hyphen. One is harmless in a command, and the storage check says what is wrong with the name.
_STORAGE_ACCOUNT = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,22}[a-z0-9])")
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_LOCATION = re.compile(r"[a-z][a-z0-9]{1,39}")
# With anonymisation on, the shell gives placeholders and maps them back before it classifies a command.
_PLACEHOLDER = re.compile(r"\[AZURE_RESOURCE_[0-9]{1,9}\]")
_PREFIX = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,18}[A-Za-z0-9])?")
_GROUP_PUNCTUATION = frozenset("_-.()")


def is_capture_name(text: str) -> bool:
    return _CAPTURE_NAME.fullmatch(text) is not None


def is_location(text: str) -> bool:
    return _LOCATION.fullmatch(text) is not None


def is_resource_id(text: str) -> bool:
    match = _RESOURCE_ID.fullmatch(text)
    return match is not None and len(text) <= 1024 and _is_group(match["group"])


def is_placeholder(text: str) -> bool:
    return _PLACEHOLDER.fullmatch(text) is not None


def check_target(text: str) -> str:
    if is_resource_id(text) or is_placeholder(text) or _RESOURCE_NAME.fullmatch(text):
        return text
    raise UsageError(
        f"target {shown(text)} is neither a resource name (letters, digits, '.', '_', '-'; 80 at most; "
        "it begins with a letter or digit) nor a full resource id"
    )


def check_resource_group(text: str) -> str:
    if _is_group(text):
        return text
    raise UsageError(
        f"resource_group {shown(text)} is no Azure resource group name (letters, digits, '_', '-', '.', "
        "parentheses; 90 at most; it does not begin with '-' or end with '.')"
    )


def check_storage_account(text: str) -> str:
    if _STORAGE_ACCOUNT.fullmatch(text):
        return text
    raise UsageError(
        f"storage_account {shown(text)} is no Azure storage account name (3 to 24 lower-case letters and digits)"
    )


def check_container(text: str) -> str:
    if _CONTAINER.fullmatch(text):
        return text
    raise UsageError(f"storage_container {shown(text)} is no container name (3 to 63 of a-z, 0-9 and single '-')")


def check_prefix(text: str) -> str:
    if _PREFIX.fullmatch(text):
        return text
    raise UsageError(f"capture_name_prefix {shown(text)} is no prefix (1 to 20 letters, digits and '-')")


def resource_group_of(target: str) -> str | None:
    """The resource group that a full resource id names."""
    match = _RESOURCE_ID.fullmatch(target)
    return match["group"] if match else None


def short_name(target: str) -> str:
    """A target's last path segment."""
    return target.rstrip("/").rsplit("/", 1)[-1]


def new_task_id(prefix: str, target: str, moment: datetime, taken: Callable[[str], bool]) -> str:
    """`{prefix}_{last segment}_{YYYYMMDDTHHMMSS}`, within 80 characters, numbered where it is taken already."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", short_name(target)).strip("._-") or "target"
    stamp = moment.strftime("%Y%m%dT%H%M%S")
    number = 1
    while True:
        ending = f"_{stamp}" if number == 1 else f"_{stamp}_{number}"
        room = CAPTURE_NAME_LIMIT - len(prefix) - 1 - len(ending)
        candidate = f"{prefix}_{name[:room]}{ending}"
        if not taken(candidate):
            return candidate
        number += 1


def shown(text: str, limit: int = 80) -> str:
    """A refused value, fit to be read: in quotes, on one line, bounded."""
    return repr(one_line(text, limit))


def one_line(text: str, limit: int) -> str:
    """`text` without control, format and line-separating characters, on one line, `limit` characters at most."""
    printable = "".join(" " if unicodedata.category(c) in _UNPRINTABLE else c for c in text[: limit * 8])
    line = " ".join(printable.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _is_group(text: str) -> bool:
    return (
        1 <= len(text) <= 90
        and all(c.isalnum() or c in _GROUP_PUNCTUATION for c in text)
        and not text.startswith("-")
        and not text.endswith(".")
    )
