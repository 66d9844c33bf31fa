"""The Azure CLI: its commands with their HTTP methods and options, from `commands.txt`, and the kinds of its errors.

Facts about the CLI, not rules: `ghost.shell` decides what is safe, `ghost.agent` what to correct. Starts no program and
reads nothing of the user's but the names of defaults in the CLI's configuration.
"""

from ghost.azure.azure_errors import PROGRAM_MISSING, AzureError, ErrorKind, error_message, error_of, read_error
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
    "PROGRAM_MISSING",
    "Arity",
    "AzureError",
    "Catalogue",
    "Command",
    "Configuration",
    "ErrorKind",
    "Option",
    "catalogue",
    "error_message",
    "error_of",
    "is_word_of_az",
    "parse_options",
    "read_configuration",
    "read_error",
]
