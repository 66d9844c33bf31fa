"""How fast text is redacted, and whether the time grows with the length and no faster.

python -m benchmarks.redact               lengths from 64 KiB to 1 MiB: ten minutes
python -m benchmarks.redact --full        up to 16 MiB: seven hours; wants a quiet machine
python -m benchmarks.redact --only key    the shapes with these letters in their name

How long it will take is measured and printed first. The best of five on log text is the one least disturbed by others.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ghost.shell import redact
from ghost.shell.record.command_output import process_output
from ghost.shell.run.execution import STDOUT_LIMIT, Captured

HOSTILE: dict[str, str | tuple[str, str, str]] = {
    "key=key=...": "key=",
    "password=password=...": "password=",
    "host:1,password=,...": "h:1,password=,",
    "quotes": '"',
    "escaped quotes": '\\"',
    "eyJ...": "eyJ",
    "-----BEGIN ...": "-----BEGIN ",
    "-----BEGIN PRIVATE KEY...": "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY...": "-----END PRIVATE KEY-----\n",
    "C=C=...": "C=",
    "one long line": "a",
    "one long word of base64": "QUJDZGVm",
    "colour codes": "\x1b[1m",
    "hexadecimal rows": "0x0010:  7061 7373 776f 7264 3d68 756e 7465 7232  password=hunter2\n",
    "headers of tables": "name  password  key\n",
    "userinfo": "a://b:c",
    "names and values": '"name": "password", ',
    "statements": "enable secret 5 hunter2x\n",
    "keywords and no secret": "neighbor key 1 md5 ",
    "sentences": "the password is required. ",
    "calls": '("password", "x',
    "manifests": "kind: Secret\ndata:\n  a: b\n",
    "tokens": '"tokens": {"a": "b"',
    "types and numbers": "password 7 ",
    "fields": '{"name": "password", "value": ',
    "fields of a log": "key=password ",
    "rows": "password,",
    "cells of a page": "<td>password</td>",
    "leaders": "password . . ",
    "escapes": "p\\u0061ss",
    "statements of SQL": "INSERT INTO t (password) VALUES ('x', ",
    "strings joined": 'password = "a" + ',
    "lists": "passwords:\n  - a\n",
    "words behind a name": "password for bob ",
    "logins": 'auth=("a", user a:b ',
    "options": "-u a -p ",
    "prompts": "Enter password:\nab12cd\n",
    "folded tokens": "eyJhbGciOiJI.abcd\n",
    "tokens folded before a dot": "eyJ" + "A1b" * 14 + "\n",
    "lines of an opaque token": "token=" + "A1b" * 14 + "\n",
    "passwords shown by PowerShell": "PS> x.GetNetworkCredential().Password\nPS> ",
    "challenges": 'WWW-Authenticate: Digest nonce="aB3',
    "messages of tools": "passwd: no changes\ncookie: 0x1\n",
    "escaped addresses": "a:\\/\\/b:c",
    "blocks of prose": " password: |\n the word is not for of you\n",
    "folded blocks of prose": " secret: >-\n the word is not for of you\n",
    "blocks of masks": " password: |\n ***\n",
    "rows of one quote": "INSERT INTO t (password) VALUES (\\'x\n",
    "rows of one double quote": 'INSERT INTO t (password) VALUES (\\"x\n',
    "escaped colour codes": '{"line": "\\u001b[1mpassword\\u001b[0m x"}, ',
    "letters in escapes": '"contrase\\u00f1a": ',
    "pairs of surrogates": "\\ud83d\\ude00",
    "backslashes": "\\",
    "strings that hold a quotation mark": '"key \\" x", ',
    "strings that hold lines": '"a\\nkey", ',
    "folded connection strings": "A=b;AccountKey=c\nd",
    "connection strings that may be folded": "A=b;AccountKey=cccc\n",
    "groups of four": "password: abcd ",
    "names in brackets": "a (password) : ",
    "things that names describe": "secret store driver ",
    "sessions of TLS": "Session-ID: ABCDEF\n",
    "announced secrets": "Password for the [elastic] user successfully reset.\nNew value: ",
    "announcements": "Your new API key is:\n\n",
    "blocks of tokens": 'acl {\n tokens {\n agent = "',
    "tables of tabs": "ID\t\tToken\t\tUser\n",
    "constants of PHP": "define('AUTH_SALT', '",
    "packages": "github.com/a/go-password v0.2.0 h1:",
    "commands as values": "TOKEN=$(cat ",
    "commands in backticks": "TOKEN=`cat ",
    "labels": 'secret="a",',
    "commit subjects": "87f8544 password: enforce ",
    "members of a key": "privateExponent:\n    00:a9:",
    "compressed words": "H4sIAAAAAAACA1NW1E/KzNMvzuBKrSjILypRcHGKD3AMDg73D3KxDc/MK0kt4lKmkhoAGJ5n5GwAAAA= ",
    "headers of a proxy": "set-header X-Edge-Auth ",
    "keys of tunnels": "  SK_ei: 94f6b94063354ced-",
    "keys of tunnels with their length": " esp=aes key=16 ",
    "keys of setkey": "\tE: aes-cbc  8fdfd07c ",
    "secrets in a device's cipher": 'a-encrypted "',
    "wrapped secrets": "%^%#a",
    "users of snmpd": ".1.3.6.1.6.3.10.1.1.3 0x",
    "settings one below the other": "DB_PASSWORD  word\n",
    "settings beside bars": "| db_password | word |\n",
    "keywords behind a keyword": "authentication md5-key ",
    "verbs behind a community": "snmp community create ",
    "marks behind a keyword": "enable password }=;'\"|",
    "words that are assigned": "username b password abc=",
    "servers and addresses": "server 1 address 10.0.0.5 port 1 ",
    "labels of several words": "Key Content   : ab cd ",
    "passwords in SQL": "SET PASSWORD FOR 'b' ",
    "strings of here": 'cryptsetup x <<< "',
    "quotes of a shell": "password='a'\\''",
    "variables before a command": "PGPASSWORD=$A psql ",
    "cells": "| password | a;b,",
    "arguments in one list": '"mysql", "-pa b", ',
    "lists of arguments": '["mysql", "-p", "a"]\n',
    "arguments a line each": "- -pa\n",
    "arguments a line each, deeper": " - -p\n  - -p\n",
    "arguments in hexadecimal": "cmd=70617373776f72643d78 ",
    "cookies of a browser": '"value": "abcdefghijk1", "httpOnly": ',
    "cookies of a browser, turned": '"httpOnly": "value": "',
    "sections before names": '"name": "a:password:',
    "sections of names": "key:a:secret:",
    "settings by lines": "password  False  x  \n",
    "halves of a pair": "AKIA0123456789ABCDEF,",
    "indented ends of keys": "  QUJD\n  -----END PRIVATE KEY-----\n",
    "tables with bars": "+--+\n| password | a |\n",
    "names of Secrets": 'secret "a" not found: ',
    "steps of a pipeline": "##vso[task.setvariable variable=password]",
}
ENDED: dict[str, str | tuple[str, str, str]] = {
    "strings without an end": ("\n", '\\"', "\\\nx"),
    "lists of one string": ("", 'password=[\\"', "\nx\ny\n"),
    "escaped strings without an end": ("", 'password=\\\\"x', "\ny\n"),
    "lists of strings in each other": ('tokens: ["a\\" ', 'password: ["\\" ', '\\\nz"'),
    "lists that end in another": ("", 'tokens: ["\\" ', "{"),
    "folded strings": ("", 'password="a\n b', ""),
    "escaped quotes inside escaped quotes": ('password=\\"', '\\\\\\"', "\n"),
    "tokens that are cut": ("", "eyJabcdefgh.", "eyJabcdefgh.a"),
}
"""What stands before and behind what is repeated: only there it shows that nothing of it ends."""
KIB = 1024
DOUBLING_BOUND = 2.3
READ = 512 * KIB
"""Of each length at least so much is redacted for a reading."""
LOG_TEXT_BOUND = 5.0
"""MB/s."""


def log_text(size: int) -> str:
    source = random.Random(1)
    lines = (
        f"2025-01-15T14:32:{n % 60:02}.{n:06}Z level=info "
        f'msg="connection from 10.0.{n % 250}.{n % 199}:{40_000 + n % 9_999} to 10.0.2.4:6379 accepted" '
        f"request_id={source.getrandbits(64):016x} duration_ms={n % 977} status=200\n"
        for n in range(size // 150 + 1)
    )
    return "".join(lines)[:size]


def seconds(action: Callable[[], object]) -> float:
    started = time.process_time()  # one thread: what else runs on the machine is not counted
    action()
    return time.process_time() - started


def mean_seconds(text: str, times: int) -> float:
    return seconds(lambda: [redact(text) for _ in range(times)]) / times


def speed_on_log_text() -> tuple[float, float]:
    """MB/s of five runs: the median and the best."""
    text = log_text(4 * KIB * KIB)
    times = [seconds(lambda: redact(text)) for _ in range(5)]
    return len(text) / statistics.median(times) / 1e6, len(text) / min(times) / 1e6


def expected_minutes(shapes: Iterable[str | tuple[str, str, str]], largest: int, runs: int = 5) -> float:
    """How long the doublings of these shapes will take, from one reading of each at the smallest length."""
    smallest = sum(seconds(partial(redact, repeated(shape, 64 * KIB))) for shape in shapes)
    return smallest * (2 * largest / (64 * KIB) - 1) * runs / 60


def repeated(shape: str | tuple[str, str, str], size: int) -> str:
    head, unit, end = ("", shape, "") if isinstance(shape, str) else shape
    return head + unit * (size // len(unit)) + end


def doubling(shape: str | tuple[str, str, str], largest: int, runs: int = 5) -> tuple[float, float]:
    """The worst ratio of the time for twice the length, and MB/s at the largest.

    Each run goes through all lengths, and a ratio is the median of those of the runs: two lengths are compared within
    one run, so that an hour in which the machine is slower does not stand between them. What is over in some
    milliseconds is done several times: the mean is the reading.
    """
    sizes = [64 * KIB]
    while sizes[-1] < largest:
        sizes.append(sizes[-1] * 2)
    times = [[mean_seconds(repeated(shape, size), max(1, READ // size)) for size in sizes] for _ in range(runs)]
    ratios = [[twice / once for once, twice in itertools.pairwise(run)] for run in times]
    worst = max(statistics.median(of_length) for of_length in zip(*ratios, strict=True))
    return worst, sizes[-1] / statistics.median(run[-1] for run in times) / 1e6


def peer_speed(text: str) -> float | None:
    """MB/s of detect-secrets, line by line; None where it is not installed."""
    if importlib.util.find_spec("detect_secrets") is None:
        return None
    from detect_secrets.core.scan import scan_line  # type: ignore[import-not-found]
    from detect_secrets.settings import default_settings  # type: ignore[import-not-found]

    def scan() -> None:
        with default_settings():
            for line in text.splitlines():
                list(scan_line(line))

    return len(text) / seconds(scan) / 1e6


def main(words: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="lengths up to 16 MiB")
    parser.add_argument("--only", default="", help="only the shapes with these letters in their name")
    arguments = parser.parse_args(words)
    largest = 16 * KIB * KIB if arguments.full else KIB * KIB
    shapes = {name: shape for name, shape in (HOSTILE | ENDED).items() if arguments.only in name}
    if not shapes:
        parser.error(f"no shape has {arguments.only!r} in its name; there are: {', '.join(HOSTILE | ENDED)}")

    redact(log_text(64 * KIB))  # imports aside
    ours, best = speed_on_log_text()
    print(f"log text                     {ours:7.1f} MB/s   (best {best:.1f}; bound: at least {LOG_TEXT_BOUND:.0f})")
    peer = peer_speed(log_text(200 * KIB))
    if peer is None:
        print("detect-secrets               not installed: no comparison")
    else:
        print(f"detect-secrets, same text    {peer:7.2f} MB/s   Ghost is {ours / peer:.0f} times as fast")

    print(f"\ndoubling the length, 64 KiB to {largest // KIB} KiB, median of 5 (bound: at most {DOUBLING_BOUND})")
    print(f"about {expected_minutes(shapes.values(), largest):.0f} minutes", flush=True)
    measured: dict[str, tuple[float, float]] = {}
    for number, (name, shape) in enumerate(shapes.items(), 1):
        ratio, speed = measured[name] = doubling(shape, largest)
        print(f"{number:2}/{len(shapes)} {name:28} {ratio:6.2f}   {speed:7.2f} MB/s", flush=True)
    worst = max(measured, key=lambda name: measured[name][0])
    slowest = min(measured, key=lambda name: measured[name][1])
    beyond = sum(ratio > DOUBLING_BOUND for ratio, _ in measured.values())
    print(
        f"summary: log text {ours:.1f} MB/s; worst doubling {measured[worst][0]:.2f} ({worst}); "
        f"slowest {measured[slowest][1]:.2f} MB/s ({slowest}); "
        f"{beyond} of {len(measured)} shapes beyond {DOUBLING_BOUND}"
    )

    print("\n16 MiB of captured output, processed (shortened, redacted, truncated, redacted)")
    for name, shape in {**shapes, "log lines": log_text(170)}.items():
        text = repeated(shape, STDOUT_LIMIT)
        captured = Captured.of(text, STDOUT_LIMIT)
        print(f"{name:28} {seconds(partial(process_output, captured, Captured(), None)):6.2f} s", flush=True)
    return 0 if ours >= LOG_TEXT_BOUND and not beyond else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
