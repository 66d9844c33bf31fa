"""Compiles the kernels with numba, where it is installed and the capture is large enough to repay it.

The compiled code lies in a cache directory named after everything it depends on: kernel sources, numba, Python and
processor. Beside what numba keeps there lies one file with all kernels (`object_file.py`), which is loaded without
numba: importing it and its own copies takes half a second. Without numba, or without a directory to write to,
everything still works, only slower.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghost.errors import RecordError
from ghost.pcap import layout
from ghost.pcap.array_types import Kernel, Vector, interpreted_kernel, interpreted_vector
from ghost.pcap.kernels import (
    address_table,
    capture_records,
    decoder,
    duplicates,
    flow_hash,
    object_file,
    packet_totals,
    parser_selection,
    payload_signatures,
    pipeline,
    time_bins,
    tunnel_headers,
    undecoded_packets,
)
from ghost.pcap.protocols import tls_handshake_records, tls_session_tickets, udp_conversations
from ghost.pcap.tcp import (
    analysis_flags,
    duplicate_segments,
    response_times,
    scoreboard,
    state_machine,
    stream_table,
    tcp_header,
    three_way_handshake,
)
from ghost.records import write_text

# Packets from which compiling repays: loading the compiled code takes a tenth of a second, compiling about 20.
WORTH_LOADING = 10_000
WORTH_COMPILING = 250_000
_READY = "ready"

# Bounds are checked: captures are hostile input. References are not counted: a kernel makes no array and keeps none,
# and counting would take half the time.
_OPTIONS: dict[str, Any] = {
    "nogil": True, "boundscheck": True, "error_model": "numpy", "_nrt": False,
}  # fmt: skip
_MODULES = (
    flow_hash, time_bins, scoreboard, tls_session_tickets, address_table, duplicates, payload_signatures,
    tls_handshake_records, tunnel_headers, tcp_header, decoder, stream_table, analysis_flags, duplicate_segments,
    three_way_handshake, response_times, state_machine, udp_conversations, capture_records,
    undecoded_packets, packet_totals, pipeline, parser_selection,
)  # fmt: skip
"""Those that others call come first."""
_ENTRIES = (
    capture_records.walk_pcap, capture_records.walk_pcapng, pipeline.pass_packets, parser_selection.sort_marked,
    decoder.decode, address_table.place_addresses, state_machine.finish, stream_table.place_streams,
    udp_conversations.place_conversations,
)  # fmt: skip
"""The kernels that are called from outside; the others are parts of these."""
_OBJECTS = "kernels"


def worth_it(packets_left: float) -> bool:
    """Return whether compiled kernels finish this many packets sooner."""
    if importlib.util.find_spec("numba") is None or packets_left < WORTH_LOADING:
        return False
    return packets_left >= WORTH_COMPILING or ready()


@cache
def cache_directory() -> Path:
    """Return the cache directory of exactly this version; private to the user."""
    sources = hashlib.sha256()
    for module in (layout, *_MODULES):
        sources.update(Path(str(module.__file__)).read_bytes())
    for part in (_numba_version(), np.__version__, sys.version, platform.machine(), platform.processor()):
        sources.update(part.encode() + b"\0")
    return _caches() / "ghost" / "kernels" / sources.hexdigest()[:16]


def _caches() -> Path:
    """Return the user's cache directory; a relative path if it is unknown."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():  # others are to be ignored, says the XDG specification
        return given
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a container's user of whom nothing but the number is known
        return Path()


def _numba_version() -> str:
    """Return numba's version without importing it or package metadata, which takes longer than reading a small
    capture."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        return ""
    return Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")


def _usable(directory: Path) -> bool:
    """Return whether the directory can be written, and by nobody else: numba runs what it finds there."""
    if not directory.is_absolute():
        return False
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = directory.stat()
    except OSError:
        return False
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022 and os.access(directory, os.W_OK)


@cache
def load() -> tuple[Vector, Kernel]:
    """Return compiled kernels and the vectors they take. Raises"""
    directory = cache_directory()
    entries = _entries()
    if _usable(directory) and ready():
        found = object_file.load(directory / _OBJECTS, entries)
        if found is not None:
            return _array, found.__getitem__
    return _array, _dispatchers(directory).__getitem__


def loaded() -> tuple[Vector, Kernel]:
    """Return compiled kernels if they are already loaded, else interpreted ones."""
    return load() if load.cache_info().currsize else (interpreted_vector, interpreted_kernel)


def _entries() -> list[Callable[..., Any]]:
    return [function for module in _MODULES for function in module.KERNELS if function in _ENTRIES]


def _dispatchers(directory: Path) -> dict[Callable[..., Any], Any]:
    """Return kernels that numba compiles on their first call, or takes from its cache."""
    import numba

    keep = _usable(directory)
    if keep and ready() and not _matches_digest(directory):
        # Damaged on disk: numba would fail on it, again and again.
        for path in _files(directory):
            path.unlink(missing_ok=True)
    settings: Any = numba.config
    settings.CACHE_DIR = str(directory)
    compiled: dict[Callable[..., Any], Any] = {}
    for module in _MODULES:
        for function in module.KERNELS:
            compiled[function] = numba.njit(cache=keep, **_OPTIONS)(_linked(function, compiled))
            if keep:
                _tolerate_cache_errors(compiled[function])
    return compiled


def _tolerate_cache_errors(dispatcher: Any) -> None:
    """Make numba compile what it cannot read from its cache, and continue if a full disk keeps nothing."""
    kept = dispatcher._cache
    load, save = kept.load_overload, kept.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # noqa: BLE001 - whatever reading damaged pickles raises
            with suppress(OSError):
                kept.flush()
            return None

    def save_overload(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    kept.load_overload, kept.save_overload = load_overload, save_overload


def ready() -> bool:
    """Return whether compiled kernels are in the cache."""
    directory = cache_directory()
    try:
        return directory.is_absolute() and (directory / _READY).is_file()
    except OSError:  # somebody else's, or a name that no system takes
        return False


def _matches_digest(directory: Path) -> bool:
    try:
        return (directory / _READY).read_bytes() == _contents(directory).encode()
    except OSError:
        return False


def mark_ready() -> None:
    """Mark the kernels in the cache as complete, so that smaller captures use them too."""
    directory = cache_directory()
    if not _usable(directory):
        return
    entries = _entries()
    if ready() and object_file.sound(directory / _OBJECTS, entries):
        return
    dispatchers = _dispatchers(directory)
    with suppress(OSError, RecordError):  # a full disk keeps nothing, and no result is worse for it
        object_file.save(directory / _OBJECTS, {function: dispatchers[function] for function in entries})
        if _all_kept(directory) and not _matches_digest(directory):
            write_text(directory / _READY, _contents(directory))


def _all_kept(directory: Path) -> bool:
    return sum(path.suffix == ".nbc" for path in _files(directory)) >= len(_entries())


def _contents(directory: Path) -> str:
    """Return a digest of the compiled code."""
    found = hashlib.sha256()
    for path in _files(directory):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.nb[ci]"))


def _linked(function: Callable[..., Any], compiled: dict[Callable[..., Any], Callable[..., Any]]) -> types.FunctionType:
    """Return the function with its calls of kernels replaced by compiled ones."""
    assert isinstance(function, types.FunctionType)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = names.get(name)
        if isinstance(value, types.FunctionType) and value in compiled:
            names[name] = compiled[value]
    linked = types.FunctionType(function.__code__, names, function.__name__)
    linked.__module__, linked.__qualname__ = function.__module__, function.__qualname__
    return linked


def _array(array: NDArray[Any]) -> Any:
    return array
