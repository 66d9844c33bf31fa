"""Options with defaults in the user's az configuration, and command groups added by extensions.

Read from the CLI's configuration directory (https://learn.microsoft.com/cli/azure/azure-cli-configuration): names only,
no values.
"""

from __future__ import annotations

import configparser
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Configuration:
    has_defaults: bool = False
    """Some required options may be omitted: `az config set defaults.group=...`, or persisted parameters."""
    extended: frozenset[str] = frozenset()
    """First words of commands that installed extensions add to."""
    unknown_extensions: bool = False
    """Extensions are installed and the CLI has no index of their commands."""


def read_configuration(environment: Mapping[str, str] | None = None, directory: Path | None = None) -> Configuration:
    """Return the configuration that az would find when started in `directory` with `environment`."""
    environment = os.environ if environment is None else environment
    here = Path.cwd() if directory is None else directory
    home = Path(environment.get("AZURE_CONFIG_DIR") or Path.home() / ".azure")
    files = [home / "config", *(parent / ".azure" / "config" for parent in (here, *here.parents))]
    index = _extension_groups(home / "commandIndex.json")
    return Configuration(
        has_defaults=any(name.startswith("AZURE_DEFAULTS_") for name in environment) or any(map(_sets_defaults, files)),
        extended=index or frozenset(),
        unknown_extensions=index is None
        and _has_entries(Path(environment.get("AZURE_EXTENSION_DIR") or home / "cliextensions")),
    )


def _sets_defaults(file: Path) -> bool:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(file, encoding="utf-8")
    except (OSError, UnicodeDecodeError, configparser.Error):
        return True  # az may read it where this cannot: suppose that it has defaults
    return any(parser.has_section(name) and parser.options(name) for name in ("defaults", "local_context"))


def _extension_groups(index: Path) -> frozenset[str] | None:
    """Return the groups that extensions add, from the CLI's command index; None without an index."""
    try:
        words = json.loads(index.read_text(encoding="utf-8"))["commandIndex"]
        return frozenset(word for word, modules in words.items() if any(name.startswith("azext_") for name in modules))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _has_entries(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except OSError:
        return False
