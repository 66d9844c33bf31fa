"""Validation of names used in commands. A target, group or account is external text.

Azure's rules: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
No accepted name begins with `-`, so none can be taken for an option; none holds a space, a quote or a control
character.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from ghost.errors import UsageError
from ghost.text import one_line

CAPTURE_NAME_LIMIT = 80
_ENDING_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_ENDING_LENGTH = 4

_SEGMENT = r"[A-Za-z0-9_(](?:[A-Za-z0-9_.()-]*[A-Za-z0-9_)-])?"
_RESOURCE_ID = re.compile(
    r"/subscriptions/(?P<subscription>[0-9A-Za-z][0-9A-Za-z-]{0,63})/resourceGroups/(?P<group>[^/]{1,90})"
    rf"/providers/(?P<namespace>[A-Za-z][A-Za-z0-9.]{{1,99}})(?P<path>(?:/{_SEGMENT}/{_SEGMENT})+)",
    re.IGNORECASE,
)
_INSTANCE_ID = re.compile(
    r"(?P<set>/.+/Microsoft\.Compute/virtualMachineScaleSets/(?P<name>[^/]+))/virtualMachines/(?P<instance>[^/]+)",
    re.IGNORECASE,
)
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
_CAPTURE_NAME = _RESOURCE_NAME
# Azure's accounts hold no hyphen. One is harmless in a command, and the storage check says what is wrong with the name.
_STORAGE_ACCOUNT = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,22}[a-z0-9])")
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_LOCATION = re.compile(r"[a-z][a-z0-9]{1,39}")
_BLOB = re.compile(r"(?=.{1,1024}\Z)[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_ENDPOINT = re.compile(r"https://[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?(?::[0-9]{1,5})?/(?:[a-z0-9]{3,24}/)?")
# With anonymisation on, the shell gives placeholders and maps them back before it classifies a command.
_PLACEHOLDER = re.compile(r"\[AZURE_RESOURCE_[0-9]{1,9}\]")
_MACHINE = re.compile(r"\[MACHINE_[0-9]{1,9}\]")
_PRINCIPAL = re.compile(r"[A-Za-z0-9][\w.+#-]{0,112}@[A-Za-z0-9.-]{1,100}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_PREFIX = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,18}[A-Za-z0-9])?")
_STAMP = re.compile(r"_([0-9]{8}T[0-9]{6})(?:_[0-9]{1,3})?(?:_[a-z0-9]{4})?\Z")
_GROUP_PUNCTUATION = frozenset("_-.()")


def is_capture_name(text: str) -> bool:
    return _CAPTURE_NAME.fullmatch(text) is not None


def is_location(text: str) -> bool:
    return _LOCATION.fullmatch(text) is not None


def is_resource_id(text: str) -> bool:
    match = _RESOURCE_ID.fullmatch(text)
    return match is not None and len(text) <= 1024 and is_resource_group(match["group"])


def usable_id(value: object) -> str | None:
    """Return a resource id, or its placeholder if the shell hides it; None if it is not safe in a command."""
    return value if isinstance(value, str) and (is_resource_id(value) or is_placeholder(value)) else None


def is_blob_name(text: str) -> bool:
    """Return whether the text is a blob path in its container, of the characters Ghost and Azure use for captures."""
    return _BLOB.fullmatch(text) is not None and "/../" not in f"/{text}/" and "/./" not in f"/{text}/"


def is_storage_endpoint(text: str) -> bool:
    """Return whether the text is a blob endpoint: an https URL of a host, optionally with the account as its path."""
    return _ENDPOINT.fullmatch(text) is not None


def serves_account(endpoint: str, account: str) -> bool:
    """Return whether a storage endpoint names the account, in its host or as its path."""
    parts = urlsplit(endpoint)
    return account in ((parts.hostname or "").partition(".")[0], parts.path.strip("/"))


def is_local_path(text: str) -> bool:
    return text.startswith("/") and text.isprintable()


def is_principal(text: str) -> bool:
    """Return whether the text is a user's name or the id of an application, as `az account show` names who signed in.

    A managed identity is named by a word that identifies none.
    """
    return _PRINCIPAL.fullmatch(text) is not None


def is_placeholder(text: str) -> bool:
    return _PLACEHOLDER.fullmatch(text) is not None


def check_target(text: str) -> str:
    if is_resource_id(text) or is_placeholder(text) or _RESOURCE_NAME.fullmatch(text) or _MACHINE.fullmatch(text):
        return text
    raise UsageError(
        f"target {shown(text)} is neither a resource name (letters, digits, '.', '_', '-'; 80 at most; "
        "it begins with a letter or digit) nor a full resource id"
    )


def check_resource_group(text: str) -> str:
    if is_resource_group(text):
        return text
    raise UsageError(
        f"resource_group {shown(text)} is not an Azure resource group name (letters, digits, '_', '-', '.', "
        "parentheses; 90 at most; it does not begin with '-' or end with '.')"
    )


def is_storage_account(text: str) -> bool:
    return _STORAGE_ACCOUNT.fullmatch(text) is not None


def is_container(text: str) -> bool:
    return _CONTAINER.fullmatch(text) is not None


def check_storage_account(text: str) -> str:
    if is_storage_account(text):
        return text
    raise UsageError(
        f"storage_account {shown(text)} is not an Azure storage account name (3 to 24 lower-case letters and digits)"
    )


def check_container(text: str) -> str:
    if is_container(text):
        return text
    raise UsageError(f"storage_container {shown(text)} is not a container name (3 to 63 of a-z, 0-9 and single '-')")


def check_prefix(text: str) -> str:
    if _PREFIX.fullmatch(text):
        return text
    raise UsageError(f"capture_name_prefix {shown(text)} is not a prefix (1 to 20 letters, digits and '-')")


def resource_group_of(target: str) -> str | None:
    """Return the resource group of a full resource id."""
    match = _RESOURCE_ID.fullmatch(target)
    return match["group"] if match else None


def subscription_of(target: str) -> str | None:
    """Return the subscription of a full resource id."""
    match = _RESOURCE_ID.fullmatch(target)
    return match["subscription"] if match else None


@dataclass(frozen=True)
class ScaleSetInstance:
    scale_set_id: str
    scale_set: str
    instance: str


def scale_set_instance(target: str) -> ScaleSetInstance | None:
    """Return the scale set and instance of a full resource id; None if it is something else."""
    match = _INSTANCE_ID.fullmatch(target) if is_resource_id(target) else None
    return ScaleSetInstance(match["set"], match["name"], match["instance"]) if match else None


@dataclass(frozen=True)
class BlobPlace:
    account: str
    container: str
    blob: str


def blob_location(url: str) -> BlobPlace | None:
    """Return account, container and blob of a blob URL, with the account in the host or as the first path segment.

    None if it is not such a URL, or holds text that is not safe in a command.
    """
    if not url.isprintable():  # urlsplit drops some control characters: the rest would name another blob
        return None
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address, a host that is no name
        return None
    host, path = parts.hostname or "", [segment for segment in parts.path.split("/") if segment]
    if parts.scheme != "https" or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    account = host.partition(".")[0] if ".blob." in host else (path.pop(0) if path else "")
    container, blob = (path[0], "/".join(path[1:])) if path else ("", "")
    usable = _STORAGE_ACCOUNT.fullmatch(account) and _CONTAINER.fullmatch(container) and is_blob_name(blob)
    return BlobPlace(account, container, blob) if usable else None


def short_name(target: str) -> str:
    """Return a target's last path segment."""
    return target.rstrip("/").rsplit("/", 1)[-1]


def new_task_id(prefix: str, target: str, moment: datetime, taken: Callable[[str], bool]) -> str:
    """Return `{prefix}_{last segment}_{YYYYMMDDTHHMMSS}`, at most 75 characters, numbered if in use.

    The capture's name in Azure adds `_` and `random_ending()`.

    A scale set instance is named as in Azure, `{set}_{instance}`: its last segment is a number.
    """
    instance = scale_set_instance(target)
    last = f"{instance.scale_set}_{instance.instance}" if instance else short_name(target)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", last).strip("._-") or "target"
    stamp = moment.strftime("%Y%m%dT%H%M%S")
    number = 1
    while True:
        ending = f"_{stamp}" if number == 1 else f"_{stamp}_{number}"
        space = CAPTURE_NAME_LIMIT - _ENDING_LENGTH - len(f"{prefix}_{ending}_")
        candidate = f"{prefix}_{name[:space]}{ending}"
        if not taken(candidate):
            return candidate
        number += 1


def begun_at(name: str) -> datetime | None:
    """Return the time in the name of a capture, blob or file of Ghost's, with or without a random ending."""
    match = _STAMP.search(name.removesuffix(".cap"))
    try:
        return datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) if match else None
    except ValueError:
        return None


def random_ending() -> str:
    """Return four characters that keep a capture's name apart from a colleague's of the same second."""
    return "".join(secrets.choice(_ENDING_CHARACTERS) for _ in range(_ENDING_LENGTH))


def shown(text: str, limit: int = 80) -> str:
    """Return a refused value for a message: quoted, on one line, bounded."""
    return repr(one_line(text, limit))


def is_resource_group(text: str) -> bool:
    return (
        1 <= len(text) <= 90
        and all(c.isalnum() or c in _GROUP_PUNCTUATION for c in text)
        and not text.startswith("-")
        and not text.endswith(".")
    )
