"""Whether `az` is there and logged in, asked before an investigation begins."""

from __future__ import annotations

from ghost.cli.narration import NarratedShell
from ghost.cli.shell_options import error_text
from ghost.errors import ConfigurationError

AZ_NEEDED = (
    "the Azure CLI (az) was not found: install it, or name the program with GHOST_AZ=/path/to/az; to try Ghost without "
    "it, add --lab blocked-port"
)
NOT_FOUND = 127


def check_access(shell: NarratedShell) -> None:
    """The subscription that will be read. Raises where there is no `az`, or nobody is logged in."""
    command = "az account show --query '{name:name,id:id,user:user.name}' -o json"
    response = shell.execute(
        {"command": command, "reasoning": "The subscription to read and the account that is signed in."}
    )
    if response["exit_code"] == NOT_FOUND:
        raise ConfigurationError(AZ_NEEDED)
    if response["status"] == "error":
        why = error_text(response)
        raise ConfigurationError(f"az did not complete ({why}): try az account show in this shell")
    if response["exit_code"] != 0:
        complaint = str(response["stderr"]).strip().splitlines()
        if not complaint:
            ended = f"az ended with status {response['exit_code']} and printed nothing"
            raise ConfigurationError(f"{ended}: try az account show in this shell")
        why = complaint[-1]
        raise ConfigurationError(f"az cannot name a subscription ({why}): run az login, then start again")
