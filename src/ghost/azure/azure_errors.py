"""The one reader of az's errors: exit status, Azure's code, then text; its tables are in `azure_errors.toml`.

    ERROR: (AuthorizationFailed) The client ... does not have authorization to perform action '...' over scope '...'
    Code: AuthorizationFailed
    Message: ...

https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

from ghost.policy import load_policy
from ghost.text import one_line

_LONGEST_MESSAGE = 500
PROGRAM_MISSING: Final = 127


class ErrorKind(StrEnum):
    LOGIN_MISSING = "login_missing"
    LOGIN_EXPIRED = "login_expired"
    WRONG_SUBSCRIPTION = "wrong_subscription"
    """Of another login or another cloud."""
    NETWORK_DOWN = "network_down"
    THROTTLED = "throttled"
    FORBIDDEN = "forbidden"
    FIREWALL = "firewall"
    """The service's own network rules refuse this machine."""
    NOT_FOUND = "not_found"
    EXISTS = "exists"
    CONFLICT = "conflict"
    QUOTA = "quota"
    BAD_REQUEST = "bad_request"
    SERVICE_FAULT = "service_fault"
    UNKNOWN = "unknown"


_MEANING: Final = {
    ErrorKind.LOGIN_MISSING: "nobody is logged in to az",
    ErrorKind.LOGIN_EXPIRED: "the login of az has expired or is not accepted",
    ErrorKind.WRONG_SUBSCRIPTION: "the login of az does not see this subscription (az account list)",
    ErrorKind.NETWORK_DOWN: "this machine cannot reach Azure (name resolution, proxy, TLS or the network)",
    ErrorKind.THROTTLED: "Azure throttles this login",
    ErrorKind.FORBIDDEN: "the login has no permission for this",
    ErrorKind.FIREWALL: "the service's firewall refuses this machine",
    ErrorKind.NOT_FOUND: "it was not found",
    ErrorKind.EXISTS: "it exists already",
    ErrorKind.CONFLICT: "another operation, a lock or a use of the resource prevents it",
    ErrorKind.QUOTA: "a quota is used up",
    ErrorKind.BAD_REQUEST: "the command was not accepted",
    ErrorKind.SERVICE_FAULT: "Azure failed",
    ErrorKind.UNKNOWN: "the command failed",
}


@dataclass(frozen=True)
class AzureError:
    kind: ErrorKind
    message: str
    """In one line, without the code."""
    code: str | None = None
    action: str | None = None
    """The permission that is missing: Microsoft.Network/routeTables/read."""
    scope: str | None = None
    retry_after_seconds: float | None = None

    @property
    def needs_login(self) -> bool:
        return self.kind in (ErrorKind.LOGIN_MISSING, ErrorKind.LOGIN_EXPIRED)

    @property
    def meaning(self) -> str:
        """Return what the error means, as a clause."""
        if self.action:
            return f"the login has no permission {self.action}" + (f" over {self.scope}" if self.scope else "")
        return _MEANING[self.kind]

    def __str__(self) -> str:
        """Return the meaning and Azure's own words, as a clause of one line."""
        own = (self.code or self.message) if self.action else ": ".join(filter(None, (self.code, self.message)))
        return f"{self.meaning} ({own.rstrip('. ')})" if own else self.meaning


def error_of(command: str, response: Mapping[str, Any]) -> AzureError | None:
    """Return the error of a command that ran az and failed, from the shell's response; None for any other."""
    stderr, exit_code = str(response.get("stderr") or ""), response.get("exit_code")
    ended_well = exit_code == 0 and "ERROR:" not in stderr  # behind a pipe the last command's status is told
    if response.get("status") != "completed" or exit_code == PROGRAM_MISSING or ended_well:
        return None
    return read_error(stderr, exit_code) if "az" in re.split(r"[\s|;&()]+", command) else None


def read_error(stderr: str, exit_code: int | None = None) -> AzureError:
    """Return what az's standard error and exit status tell."""
    message = error_message(stderr)
    coded = _CODED.match(message) or _REST.match(message)
    entra = _ENTRA.search(message)
    storage = _STORAGE.search(stderr)
    code = coded[1] if coded else entra[1] if entra else storage[1] if storage else None
    message = message[coded.end() :] if coded else message
    permission, wait = _PERMISSION.search(message), _WAIT.search(stderr)
    return AzureError(
        kind=_kind(code, message, stderr, exit_code),
        message=one_line(message, _LONGEST_MESSAGE),
        code=code,
        action=permission["action"] if permission else None,
        scope=permission["scope"] if permission else None,
        retry_after_seconds=float(wait[1]) * (60 if wait[2] == "minute" else 1) if wait else None,
    )


def error_message(stderr: str) -> str:
    """Return az's message after its last `ERROR:`, without what repeats it; of another program the last line."""
    _, marker, message = stderr.strip().rpartition("ERROR:")
    if not marker and not _CODED.match(message) and "\n" in message and "AADSTS" not in message:
        message = message.rpartition("\n")[2]
    return _REPETITION.split(message.strip(), maxsplit=1)[0].strip()


_CODED = re.compile(r"\((\w+)\) ?")
_REST = re.compile(r"""[A-Z][A-Za-z ]+\(\{"error": ?\{"code": ?"(\w+)", ?"message": ?\"""")
"""Of az rest."""
_ENTRA = re.compile(r"\A(?:\d{3}, )?(AADSTS\d+): ")
_STORAGE = re.compile(r"^ErrorCode: ?(\w+)", re.MULTILINE)
_REPETITION = re.compile(
    r"\n(?:Code: |Traceback \(|Trace ID: |Interactive auth|Run the command below|To re-auth|RequestId:|ErrorCode:|"
    r"Depending on your operation|If you want to change the default action)"
)
_PERMISSION = re.compile(r"perform action '(?P<action>[^']+)'(?: over scope '(?P<scope>[^']+)')?")
_WAIT = re.compile(
    r"(?:Retry-After\W{1,3}|(?:again|retried|retry) (?:after|in) '?)(\d{1,5})\b'?(?:\s*(second|minute))?", re.IGNORECASE
)


@dataclass(frozen=True)
class _Rule:
    kind: ErrorKind
    codes: tuple[str, ...] = ()
    text: str = ""

    def fits(self, code: str | None, message: str) -> bool:
        named = any(fnmatchcase(code, pattern) for pattern in self.codes) if code else not self.codes
        return named and bool(self.codes or not code) and re.search(self.text, message, re.IGNORECASE) is not None


@cache
def _rules() -> tuple[_Rule, ...]:
    return load_policy(__file__, "azure_errors.toml", dict[str, tuple[_Rule, ...]])["rules"]


def _kind(code: str | None, message: str, stderr: str, exit_code: int | None) -> ErrorKind:
    text = message if code else stderr
    found = next((rule.kind for rule in _rules() if rule.fits(code, text)), None)
    return found or {2: ErrorKind.BAD_REQUEST, 3: ErrorKind.NOT_FOUND}.get(exit_code or 0, ErrorKind.UNKNOWN)
