"""An Azure of one machine that remembers which captures, blobs and files exist, and can be made to fail at one command.

It answers as a shell does. Commands are counted from the start of a life; looking for orphans, with which each process
begins, is not counted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ghost.errors import LoginError

from .scripted import (
    ACCOUNT,
    MACHINE,
    ROUTES,
    VM,
    VM_ID,
    ScriptedShell,
    broken,
    created,
    failed,
    group,
    ran,
    refused,
    status,
)

# Each command of a whole life, in order.
COMMANDS_OF_A_LIFE = (
    *("resource list", "get-instance-view", "packet-capture list", "az account show", "storage account show"),
    *(
        "container exists",
        "blob list",
        "show-effective-route-table",
        "list-effective-nsg",
        "packet-capture create",
        "show-status",
        "blob download",
    ),
    *("pcap-forensics", "packet-capture delete", "blob delete", "rm "),
)
# The same where nobody names an account, and neither of the region's two has the container: it is created in the first.
TWO_ACCOUNTS = ("aaalogs", "bbblogs")
_ACCOUNT = ("storage account show", "role assignment list", "container exists")
COMMANDS_OF_A_CHOICE = (
    *COMMANDS_OF_A_LIFE[:4],
    "storage account list",
    *_ACCOUNT * 3,
    *("show-effective-route-table", "list-effective-nsg", "container create"),
    *COMMANDS_OF_A_LIFE[COMMANDS_OF_A_LIFE.index("packet-capture create") :],
)
LIVES = {"named": COMMANDS_OF_A_LIFE, "chosen": COMMANDS_OF_A_CHOICE}


class Killed(BaseException):
    """Not an error that anything may handle: the process is gone."""


def _killed(_: dict[str, Any]) -> dict[str, Any]:
    raise Killed


def _broke(_: dict[str, Any]) -> dict[str, Any]:
    raise OSError("the shell lost its pipe")


def _log_in(_: dict[str, Any]) -> dict[str, Any]:
    raise LoginError("the login has expired: run az login, then --resume")


@dataclass(frozen=True)
class Fault:
    name: str
    instead: Callable[[dict[str, Any]], dict[str, Any]]
    """What is answered, given what would have been."""
    takes_effect: bool
    """Whether Azure did what it was asked all the same."""

    def __str__(self) -> str:
        return f"{self.name}, {'done' if self.takes_effect else 'not done'}"


KILLED_BEFORE, KILLED_AFTER = Fault("killed", _killed, False), Fault("killed", _killed, True)
FAULTS = (
    Fault("denied", lambda _: refused("not now"), False),
    Fault("nobody answered", lambda _: refused(action="user_abandoned"), False),
    Fault("non-zero", lambda _: failed("ERROR: (InternalServerError) try later"), False),
    Fault("non-zero", lambda _: failed("ERROR: (InternalServerError) try later"), True),
    Fault("not found", lambda _: failed("ERROR: (ResourceNotFound) x was not found.", 3), False),
    Fault("no program", lambda _: failed("az: command not found", 127), False),
    Fault("timeout", lambda _: broken("timeout"), False),
    Fault("timeout", lambda _: broken("timeout"), True),
    Fault("garbage", lambda _: ran('{"name": [{}]} trailing'), True),
    Fault("other JSON", lambda _: ran([[], {"exists": "?", "name": 5}, None]), True),
    Fault("empty", lambda _: ran(""), True),
    Fault("throttled", lambda _: failed("ERROR: (TooManyRequests) try again in 4 seconds"), False),
    Fault(
        "forbidden", lambda _: failed("ERROR: (AuthorizationFailed) no permission to perform action 'x/read'"), False
    ),
    Fault("cut", lambda reply: {**reply, "output_metadata": {"truncation_applied": True}}, True),
    Fault("login expired", _log_in, False),
    Fault("the shell broke", _broke, False),
    Fault("the shell broke", _broke, True),
)


class SmallAzure(ScriptedShell):
    def __init__(self, directory: Path, life: str = "named") -> None:
        super().__init__()
        self.accounts = TWO_ACCOUNTS if life == "chosen" else ()
        """Those of the region, without a container yet; none: the one that is named, with it."""
        self.containers: set[str] = set()
        self.captures: set[str] = set()
        self.blobs: set[str] = set()
        self.targets: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.directory = directory
        self.fault_at: tuple[int, Fault] | None = None
        self.faulty_pattern: tuple[str, Fault] | None = None
        """As often as such a command comes."""
        self.since_start = 0

    @property
    def left(self) -> set[str]:
        files = {path.name for path in (self.directory / "captures").glob("*.cap")}
        return self.captures | self.blobs | files

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        orphan_scan = request["reasoning"].startswith("Left-overs:")
        if not orphan_scan:
            self.since_start += 1
        fault = None if orphan_scan else self._fault(request["command"])
        gone = fault is not None and fault.name == "not found" and _removes(request["command"])
        if fault is not None and not fault.takes_effect and not gone:  # what is not found is not there
            reply = fault.instead({})
            self.requests.append(request)
        else:
            self.requests.append(request)
            reply = self._answer(request["command"])
            reply = reply if fault is None else fault.instead(reply)
        return {**reply, "audit_id": f"s1_{len(self.requests):03d}"}

    def _fault(self, command: str) -> Fault | None:
        if self.fault_at is not None and self.fault_at[0] == self.since_start:
            return self.fault_at[1]
        if self.faulty_pattern is not None and self.faulty_pattern[0] in command:
            return self.faulty_pattern[1]
        return None

    def _answer(self, command: str) -> dict[str, Any]:
        words = shlex.split(command)
        options = dict(pairwise(words))
        name = options.get("-n") or options.get("--name", "")
        match words:
            case ["az", "network", "watcher", "list", *_]:
                return ran([{"name": "w", "location": "eastus"}])
            case ["az", "resource", *_]:
                return ran([{"id": VM_ID, "type": VM, "location": "eastus"}])
            case ["az", "vm", "get-instance-view", *_]:
                return ran(MACHINE)
            case ["az", "account", "show", *_] if self.accounts:
                return ran({"name": "ana@contoso.com", "type": "user"})
            case ["az", "role", *_]:
                return ran(["Storage Blob Data Contributor"])
            case ["az", "storage", "account", "list", *_]:
                return ran({"own": "", "open": " ".join(self.accounts), "closed": ""})
            case ["az", "storage", "account", *_] if self.accounts:
                return ran({**ACCOUNT, "endpoint": f"https://{name}.blob.core.windows.net/"})
            case ["az", "storage", "account", *_]:
                return ran(ACCOUNT)
            case ["az", "storage", "container", "create", *_]:
                self.containers.add(options["--account-name"])
                return ran()
            case ["az", "storage", "container", *_] if self.accounts:
                return ran({"exists": options["--account-name"] in self.containers})
            case ["az", "network", "nic", "show-effective-route-table", *_]:
                return ran(ROUTES)
            case ["az", "network", "nic", "list-effective-nsg", *_]:
                return ran([group()])
            case ["az", "storage", "container", *_]:
                return ran({"exists": True})
            case ["az", "network", "watcher", "packet-capture", verb, *_]:
                return self._capture(verb, name, command)
            case ["az", "storage", "blob", "download", *_] if name not in self.blobs:
                return failed("ERROR: The specified blob does not exist.\nErrorCode:BlobNotFound", 3)
            case ["az", "storage", "blob", "download", *_]:
                Path(options["--file"]).write_bytes(b"x")
                return ran()
            case ["az", "storage", "blob", "list", *_]:
                return ran([{"name": blob} for blob in sorted(self.blobs)])
            case ["az", "storage", "blob", "delete", *_]:
                return self._drop(self.blobs, name)
            case ["rm", path] if not Path(path).exists():
                return failed(f"rm: cannot remove '{path}': No such file or directory")
            case ["rm", path]:
                Path(path).unlink()
        return ran()

    def _capture(self, verb: str, name: str, command: str) -> dict[str, Any]:
        match verb:
            case "list":
                return ran([{"name": capture} for capture in sorted(self.captures)])
            case "create" if name in self.captures:
                return failed(f"ERROR: (PacketCaptureAlreadyExists) {name}")
            case "create":
                self.captures.add(name)
                self.targets[name] = VM_ID
                self.places[name] = shlex.split(command)[shlex.split(command).index("--storage-path") + 1]
                self.blobs.add(f"{name}.cap")
                return created(command)
            case "show" if name in self.captures:
                path = {"storagePath": self.places[name]}
                return ran({"name": name, "target": self.targets[name], "storageLocation": path})
            case "show-status" if name in self.captures:
                return status("Stopped")
            case "delete":
                return self._drop(self.captures, name)
        return failed(f"ERROR: (ResourceNotFound) {name} was not found.", 3)

    def _drop(self, held: set[str], name: str) -> dict[str, Any]:
        if name not in held:
            return failed(f"ERROR: (NotFound) {name} was not found.", 3)
        held.remove(name)
        return ran()


def _removes(command: str) -> bool:
    return " delete " in command or command.startswith("rm ")
