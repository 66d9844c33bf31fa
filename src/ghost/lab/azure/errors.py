"""What the Azure CLI says on standard error, and the exit status that goes with it.

1  the service refused or could not be reached
2  the command or its options are wrong
3  there is no such resource
"""

from __future__ import annotations


class AzError(Exception):
    """`message` follows `ERROR: ` on standard error."""

    def __init__(self, message: str, exit_status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.exit_status = exit_status


def usage(message: str) -> AzError:
    return AzError(message, 2)


def refused(code: str, message: str) -> AzError:
    """A refusal as Azure Resource Manager words it."""
    return AzError(f"({code}) {message}\nCode: {code}\nMessage: {message}")


def resource_not_found(kind: str, resource_group: str, name: str) -> AzError:
    return _not_found(
        "ResourceNotFound",
        f"The Resource '{kind}/{name}' under resource group '{resource_group}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def part_not_found(resource_id: str) -> AzError:
    """For what is part of another resource: a subnet, a rule, a route."""
    return _not_found("NotFound", f"Resource {resource_id} not found.")


def group_not_found(name: str) -> AzError:
    return _not_found("ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def blob_service_not_found(code: str, message: str) -> AzError:
    return AzError(f"{message}\nErrorCode:{code}", 3)


def _not_found(code: str, message: str) -> AzError:
    return AzError(f"({code}) {message}\nCode: {code}\nMessage: {message}", 3)
