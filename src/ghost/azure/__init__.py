"""The Azure CLI's commands with their HTTP methods and options, read from `commands.txt`.

Facts about the CLI, not rules: `ghost.shell` decides what is safe, `ghost.agent` what to correct. Starts no program and
reads nothing of the user's but the names of defaults in the CLI's configuration.
"""

from ghost.azure.cli_configuration import Configuration, read_configuration
from ghost.azure.command_catalogue import (
    MAX_WORDS,
    Arity,
    Catalogue,
    Command,
    Option,
    catalogue,
    is_word_of_az,
    parse_options,
)

__all__ = [
    "MAX_WORDS",
    "Arity",
    "Catalogue",
    "Command",
    "Configuration",
    "Option",
    "catalogue",
    "is_word_of_az",
    "parse_options",
    "read_configuration",
]
