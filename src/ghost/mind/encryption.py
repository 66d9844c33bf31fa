"""Encryption at rest with one key (libsodium's SecretBox: XSalsa20, Poly1305).

Encrypted: content, tags, metadata and embedding of memories; thoughts, tasks and queries; values of preferences. In the
clear: ids, types, times and importance of memories, times of thoughts, names of preferences and of the embedding space,
and value lengths. An export is in the clear.

Each value is bound to its owner (`memory content mem:17`), so values cannot be exchanged in the file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Protocol

from ghost.config import Settings
from ghost.errors import ConfigurationError, StoreError

_OWNER_BYTES = 16


class Seal(Protocol):
    is_secret: bool

    def write(self, owner: str, content: bytes) -> bytes: ...

    def read(self, owner: str, written: bytes) -> bytes:
        """Decrypt a value. Raises `StoreError` if it was not written with this key for this owner."""
        ...


class NoSeal:
    """Writes values unencrypted."""

    is_secret = False

    def write(self, owner: str, content: bytes) -> bytes:  # noqa: ARG002
        return content

    def read(self, owner: str, written: bytes) -> bytes:  # noqa: ARG002
        return written


class KeySeal:
    """Encrypts with `key` (32 bytes). Needs PyNaCl (the extra `mind`); raises `ConfigurationError` if it is missing."""

    is_secret = True

    def __init__(self, key: bytes) -> None:
        try:
            from nacl.exceptions import CryptoError
            from nacl.secret import SecretBox
        except ImportError as error:
            raise ConfigurationError(
                'a memory key is set and PyNaCl is not installed: pip install "ghost-investigator[mind]"'
            ) from error
        self._box = SecretBox(key)
        self._refusal = CryptoError

    def write(self, owner: str, content: bytes) -> bytes:
        return bytes(self._box.encrypt(_mark(owner) + content))

    def read(self, owner: str, written: bytes) -> bytes:
        try:
            opened = self._box.decrypt(written)
        except (self._refusal, ValueError, TypeError) as error:
            raise StoreError(
                f"cannot decrypt {owner}: wrong key, or the file is damaged; set its own key, or restore a copy"
            ) from error
        if opened[:_OWNER_BYTES] != _mark(owner):
            raise StoreError(
                f"cannot decrypt {owner}: it holds a value of another owner, so the file was modified; restore a copy"
            )
        return opened[_OWNER_BYTES:]


def _mark(owner: str) -> bytes:
    return hashlib.blake2b(owner.encode("utf-8"), digest_size=_OWNER_BYTES).digest()


def seal_of(settings: Settings) -> Seal:
    """Return the seal for `GHOST_MEMORY_KEY` or `GHOST_MEMORY_KEY_FILE`; no encryption without either. Raises
    `ConfigurationError`.
    """
    if settings.memory_key is not None and settings.memory_key_file is not None:
        raise ConfigurationError("both GHOST_MEMORY_KEY and GHOST_MEMORY_KEY_FILE are set: set one of them")
    if settings.memory_key is not None:
        return KeySeal(_key(settings.memory_key.get_secret_value(), "GHOST_MEMORY_KEY"))
    if settings.memory_key_file is not None:
        return KeySeal(_key(_read_key_file(settings.memory_key_file), str(settings.memory_key_file)))
    return NoSeal()


def _read_key_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the memory key {path} ({error.strerror}): check GHOST_MEMORY_KEY_FILE"
        ) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(
                f"the memory key {path} is not a regular file: name another in GHOST_MEMORY_KEY_FILE"
            )
        if status.st_mode & 0o077:
            raise ConfigurationError(f"other users may read the memory key {path}: chmod 600 {path}")
        return os.read(descriptor, 1024).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _key(text: str, where: str) -> bytes:
    digits = text.strip()
    if len(digits) != 64 or not set(digits.lower()) <= set("0123456789abcdef"):
        raise ConfigurationError(
            f"{where} is not a key: 64 hexadecimal digits, for example from `openssl rand -hex 32`"
        )
    return bytes.fromhex(digits)
