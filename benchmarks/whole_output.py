"""What it costs to redact an output of 16 MiB, so that it can be kept whole: processor time, and memory added.

Peers print or cut the output of a command, and redact none of it: there is none to compare with.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import time

from ghost.shell import TopologyAnonymizer
from ghost.shell.record.command_output import process_output
from ghost.shell.record.kept_output import MAX_BYTES
from ghost.shell.run.execution import STDOUT_LIMIT, Captured

BOUND_SECONDS = 80.0
SUBSCRIPTION = "/subscriptions/0b1f6471-1bf0-4dda-aec3-111122223333/resourceGroups/rg-"


def interface(n: int, mark: str) -> dict[str, object]:
    network = f"{SUBSCRIPTION}{n % 40}/providers/Microsoft.Network"
    address = {"privateIPAddress": f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "subnet": {"id": f"{network}/subnets/a"}}
    return {
        "id": f"{network}/networkInterfaces/nic-{n}",
        "name": f"nic-{n}",
        "etag": f'W/"{n:08x}-1bf0-4dda-aec3-cb9272f09590"',
        "macAddress": f"00-0D-3A-00-{n >> 8 & 255:02X}-{n & 255:02X}",
        "networkSecurityGroup": {"id": f"{network}/networkSecurityGroups/web"},
        "ipConfigurations": [address],
        "tags": {"owner": mark},
    }


def listed(mark: str) -> bytes:
    size = len(json.dumps(interface(0, mark), indent=2)) * 5 // 4
    text = json.dumps([interface(n, mark) for n in range(MAX_BYTES // size)], indent=2, ensure_ascii=False)
    return text.encode()


OUTPUTS = {
    "a list of interfaces": (listed("anna"), False),
    "the same in private mode": (listed("anna"), True),
    "with characters of four bytes": (listed("\N{PILE OF POO}"), False),
    "with a secret in each": (listed("password: h7Gq-tR4w9Zk2"), False),
    "hostile text": (b"key=" * (MAX_BYTES // 5), False),
}


def measure(name: str) -> None:
    raw, private = OUTPUTS[name]
    anonymizer = TopologyAnonymizer() if private else None
    process_output(Captured.of(raw[:100_000], STDOUT_LIMIT), Captured(), None)  # patterns are compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    output = process_output(Captured.of(raw, STDOUT_LIMIT), Captured(), anonymizer, ("az", "network", "nic", "list"))
    seconds = time.process_time() - began
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    kept = "whole" if output.full is not None else f"in part: {output.missing}"
    print(f"{name}, {len(raw) / 2**20:.1f} MiB: {seconds:.1f} s, {added:.0f} MB added, kept {kept}")
    raise SystemExit(int(seconds > BOUND_SECONDS))


def main() -> int:
    failed = 0
    for name in OUTPUTS:
        process = multiprocessing.get_context("fork").Process(target=measure, args=(name,))
        process.start()
        process.join()
        failed |= process.exitcode or 0
    return failed
