"""The emulator's requests in a second, and how long one command of the lab's `az` takes, with the start of its process.

Requests go over HTTPS on connections that stay open, as an SDK holds them, from several clients at once, to reads, to
long-running operations and to storage alike; each is written to the request log. A second figure opens a connection for
every request, through the proxy, as a run of az does.
"""

from __future__ import annotations

import http.client
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ghost import lab
from ghost.lab.arm.local_emulator import Emulator, emulator
from ghost.lab.directory import LabDirectory

ARM = "management.lab.invalid"
CLIENTS, SECONDS = 4, 5.0
CALLS = 15
REQUESTS_BOUND, CALL_BOUND_MS = 200.0, 150.0
COMMANDS = (
    ("network", "nsg", "list", "-o", "json"),
    ("vm", "show", "-d", "-g", "prod-rg", "-n", "web-vm-01"),
    ("network", "nic", "list-effective-nsg", "-g", "prod-rg", "-n", "web-vm-01-nic", "--query", "value[].association"),
)


def targets(subscription: str) -> list[tuple[str, str]]:
    base, version = f"/subscriptions/{subscription}", "?api-version=2024-05-01"
    nic = f"{base}/resourceGroups/prod-rg/providers/Microsoft.Network/networkInterfaces/web-vm-01-nic"
    return [
        ("GET", f"{base}/providers/Microsoft.Network/networkSecurityGroups{version}"),
        ("GET", f"{base}/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01{version}"),
        ("POST", f"{nic}/effectiveRouteTable{version}"),
        ("POST", f"{nic}/effectiveNetworkSecurityGroups{version}"),
    ]


def connection(up: Emulator, *, by_proxy: bool) -> http.client.HTTPSConnection:
    trusted = ssl.create_default_context(cafile=up.environment["REQUESTS_CA_BUNDLE"])
    port = up.proxy_port if by_proxy else up.arm_port
    opened = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=trusted)
    if by_proxy:
        opened.set_tunnel(ARM, 443)
    return opened


def asked(
    opened: http.client.HTTPSConnection, method: str, target: str, headers: dict[str, str]
) -> http.client.HTTPResponse:
    opened.request(method, target, headers={"Host": ARM, **headers})
    answer = opened.getresponse()
    answer.read()
    return answer


def token(up: Emulator) -> str:
    opened = connection(up, by_proxy=True)
    secret = {"X-IDENTITY-HEADER": up.environment["IDENTITY_HEADER"]}
    opened.request("GET", f"/msi/token?resource=https://{ARM}", headers=secret)
    return str(json.loads(opened.getresponse().read())["access_token"])


def rate(up: Emulator, wanted: list[tuple[str, str]], *, kept_open: bool) -> float:
    headers = {"Authorization": f"Bearer {token(up)}"}
    counts = [0] * CLIENTS
    until = time.perf_counter() + SECONDS

    def client(number: int) -> None:
        opened = connection(up, by_proxy=not kept_open)
        while time.perf_counter() < until:
            method, target = wanted[counts[number] % len(wanted)]
            answer = asked(opened, method, target, headers)
            assert answer.status in (200, 202), answer.status
            counts[number] += 1
            if answer.status == 202:
                asked(opened, "GET", answer.headers["Location"].partition(ARM)[2], headers)
                counts[number] += 1
            if not kept_open:
                opened.close()
                opened = connection(up, by_proxy=True)

    started = time.perf_counter()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def call_ms(program: Path, environment: dict[str, str], words: tuple[str, ...]) -> float:
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        subprocess.run([program, *words], env=environment, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        running = lab.start(lab.load_scenario("blocked-port"), Path(directory) / "lab")
        opened = LabDirectory.open(Path(directory) / "lab")
        with emulator(opened) as up:
            wanted = targets(opened.world.subscription.id)
            fast, fresh = rate(up, wanted, kept_open=True), rate(up, wanted, kept_open=False)
        print(f"requests/s, {CLIENTS} clients, connections kept open: {fast:.0f} (bound {REQUESTS_BOUND:.0f})")
        print(f"requests/s, a new connection through the proxy for each: {fresh:.0f}")
        slowest = 0.0
        for words in COMMANDS:
            median = call_ms(running.program_dir / "az", running.environment, words)
            slowest = max(slowest, median)
            print(f"az {' '.join(words[:4])}: {median:.0f} ms, median of {CALLS} (bound {CALL_BOUND_MS:.0f})")
    return 0 if fast >= REQUESTS_BOUND and slowest < CALL_BOUND_MS else 1


if __name__ == "__main__":
    sys.exit(main())
