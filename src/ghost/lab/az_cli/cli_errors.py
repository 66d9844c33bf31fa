"""Error messages of the Azure CLI on standard error, with exit status.

1  the service refused or could not be reached
2  the command or its options are wrong
3  there is no such resource
"""

from __future__ import annotations


class AzError(Exception):
    """An error of the CLI. `message` follows `ERROR: ` on standard error."""

    def __init__(self, message: str, exit_status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.exit_status = exit_status


def usage(message: str) -> AzError:
    return AzError(message, 2)


def blob_service_not_found(code: str, message: str) -> AzError:
    return AzError(f"{message}\nErrorCode:{code}", 3)
