"""The reads that look for captures and blobs that earlier sessions left."""

from __future__ import annotations

import shlex

from ghost.cloud.capture_commands import Purpose, ShellCommand, of_subscription


def list_watchers(subscription: str | None) -> ShellCommand:
    query = "[].{id:id,location:location}"
    words = ["az", "network", "watcher", "list", *of_subscription(subscription), "--query", query, "-o", "json"]
    return ShellCommand(
        Purpose.LOOK_FOR_CAPTURE,
        shlex.join(words),
        "Left-overs: finding the regions in which packet captures can be.",
    )


def list_captures_of_prefix(location: str, prefix: str, subscription: str | None) -> ShellCommand:
    """Return the command that lists Ghost's captures only: a region may hold thousands, and the shell truncates long
    lists.
    """
    query = f"[?starts_with(name,'{prefix}_')].{{name:name,seconds:timeLimitInSeconds}}"
    words = [
        "az",
        "network",
        "watcher",
        "packet-capture",
        "list",
        "-l",
        location,
        *of_subscription(subscription),
        "--query",
        query,
        "-o",
        "json",
    ]
    return ShellCommand(
        Purpose.LOOK_FOR_CAPTURE,
        shlex.join(words),
        f"Left-overs: looking for {prefix}_* packet captures that an earlier session may have left.",
    )


def list_blobs_of_prefix(account: str, container: str, auth_mode: str, prefix: str) -> ShellCommand:
    words = ["az", "storage", "blob", "list", "--account-name", account, "--container-name", container]
    words += ["--prefix", f"{prefix}_", "--auth-mode", auth_mode, "--query", "[].{name:name}", "-o", "json"]
    return ShellCommand(
        Purpose.LOOK_FOR_CAPTURE,
        shlex.join(words),
        f"Left-overs: looking for {prefix}_* blobs that an earlier session may have left.",
    )
