"""Whether `az` is there and logged in, asked before an investigation begins."""

from __future__ import annotations

from typing import Final

from ghost.azure import PROGRAM_MISSING, ErrorKind, error_of
from ghost.cli.narration import NarratedShell
from ghost.cli.shell_errors import error_text
from ghost.errors import ConfigurationError
from ghost.text import one_line

AZ_NEEDED = (
    "the Azure CLI (az) was not found: install it, or name the program with GHOST_AZ=/path/to/az; to try Ghost without "
    "it, add --lab blocked-port"
)
ACCOUNT: Final = {
    "command": "az account show --query '{name:name,id:id,user:user.name}' -o json",
    "reasoning": "The subscription to read and the account that is signed in.",
}
LOGIN: Final = {
    "command": "az group list --query '[0].id' -o json",
    "reasoning": "Whether Azure accepts the login: az account show answers from a file, without a token.",
}


def check_access(shell: NarratedShell, *, simulated: bool) -> None:
    """Ask for the subscription, and of a real tenant whether it accepts the login.

    Raises `ConfigurationError` where there is no `az` or Azure cannot be reached; the shell raises `LoginError`.
    """
    account, *login = shell.execute_all([ACCOUNT] if simulated else [ACCOUNT, LOGIN])
    if account["exit_code"] == PROGRAM_MISSING:
        raise ConfigurationError(AZ_NEEDED)
    if account["status"] == "error":
        why = error_text(account)
        raise ConfigurationError(f"az did not complete ({why}): try az account show in this shell")
    if account["exit_code"] != 0:
        error = error_of("az", account)
        why = one_line(str(error), 300) if error and error.message else f"it ended with status {account['exit_code']}"
        raise ConfigurationError(f"az cannot name a subscription: {why}; try az account show in this shell")
    for answer in login:
        error = error_of("az", answer)
        if error is not None and error.kind is ErrorKind.NETWORK_DOWN:
            raise ConfigurationError(
                f"{one_line(str(error), 300)}: check HTTPS_PROXY, DNS and the network, then start again"
            )
