"""The stored state of an emulator that runs for a lab's directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ghost.records import is_held

LOCK, STATE, SETTINGS = "emulator.lock", "running.json", "azure"
UNSET_BESIDE_A_LAB = (
    "ACC_CLOUD",
    "ARM_CLOUD_METADATA_URL",
    "AZURE_CLOUD_NAME",
    "AZURE_STORAGE_ACCOUNT",
    "AZURE_STORAGE_AUTH_MODE",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SERVICE_ENDPOINT",
    "ALL_PROXY",
    "all_proxy",
    "CURL_CA_BUNDLE",
    "IDENTITY_SERVER_THUMBPRINT",
    "IMDS_ENDPOINT",
    "MSI_ENDPOINT",
    "MSI_SECRET",
)
"""Variables that would lead an Azure CLI to another cloud, login or account: they must be unset in the lab."""


@dataclass(frozen=True)
class RunningEmulator:
    """The content of `running.json`."""

    pid: int
    scenario: str
    symptom: str
    since: str
    speed: float
    environment: dict[str, str]
    requests: str
    """Path of its request log."""


def is_up(directory: Path) -> bool:
    """Return whether a process runs the emulator of this directory."""
    return is_held(directory / LOCK)
