"""How many requests a second `GET /wm` answers, and how late the slowest come, while the stream of thoughts runs.

python -m benchmarks.mind_api                           three rounds of 20 s; needs wrk
python -m benchmarks.mind_api --seconds 5 --rounds 1    a short look

20 thoughts are in memory. In the same run, in turns, wrk asks a peer: uvicorn with the same event loop and parser and
the smallest ASGI application there is, which sends as many bytes from memory. The ratio says what the API itself
costs, whatever else the machine does; the rates hold for a machine at rest only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ASKED_ONLY = True
REQUESTS_PER_SECOND = 1_000
P99_MS = 80.0
THOUGHTS = 20

_PEER = """
import sys, uvicorn
body = b"x" * int(sys.argv[2])
headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical", access_log=False, lifespan="off", ws="none")
"""
_GHOST = """
import sys
from pathlib import Path
from ghost.config import Settings
from ghost.server import serve
sys.exit(serve(Settings(), Path(sys.argv[1])))
"""
_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclass(frozen=True)
class Measured:
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    errors: int


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments or [])
    if shutil.which("wrk") is None:
        print("needs wrk: apt-get install wrk", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="ghost-bench-") as folder, _ghost(Path(folder)) as ghost:
        thoughts = _fill(ghost)
        size = len(_get(f"{ghost}/wm"))
        print(f"{thoughts} thoughts, {size} bytes an answer, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        with _peer(size) as peer:
            rounds = [(_wrk(f"{ghost}/wm", asked.seconds), _wrk(peer, asked.seconds)) for _ in range(asked.rounds)]
        running = json.loads(_get(f"{ghost}/stream"))["state"]
    for own, other in rounds:
        ratio = other.requests_per_second / own.requests_per_second
        print(f"GET /wm  {_words(own)}\npeer     {_words(other)}   {ratio:.1f} times as many")
    rate = statistics.median(own.requests_per_second for own, _ in rounds)
    p99 = statistics.median(own.p99_ms for own, _ in rounds)
    errors = sum(own.errors for own, _ in rounds)
    held = rate >= REQUESTS_PER_SECOND and p99 < P99_MS and errors == 0 and running == "running"
    print(
        f"median {rate:.0f} requests/s (bound {REQUESTS_PER_SECOND}), p99 {p99:.1f} ms (bound {P99_MS:.0f}), "
        f"{errors} errors, the stream {running}: {'held' if held else 'NOT HELD'}"
    )
    return 0 if held else 1


def _words(measured: Measured) -> str:
    return (
        f"{measured.requests_per_second:8.0f} requests/s   p50 {measured.p50_ms:6.2f} ms   "
        f"p99 {measured.p99_ms:6.2f} ms   {measured.errors} errors"
    )


@contextmanager
def _ghost(folder: Path) -> Iterator[str]:
    port = _free_port()
    settings = {"GHOST_API_PORT": str(port), "SOC_ENABLED": "true", "SOC_CADENCE_SECONDS": "1"}
    with _program([sys.executable, "-c", _GHOST, str(folder)], settings, port):
        yield f"http://localhost:{port}"


@contextmanager
def _peer(size: int) -> Iterator[str]:
    port = _free_port()
    with _program([sys.executable, "-c", _PEER, str(port), str(size)], {}, port):
        yield f"http://localhost:{port}/"


@contextmanager
def _program(command: list[str], settings: dict[str, str], port: int) -> Iterator[None]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GHOST_")}
    with subprocess.Popen(command, env=environment | settings, stderr=subprocess.DEVNULL) as program:
        try:
            for _ in range(300):
                if program.poll() is not None:
                    raise SystemExit(f"{command[2][:20]!r} ended with {program.returncode}")
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield
        finally:
            program.terminate()


def _fill(ghost: str) -> int:
    """Tells the mind things until it has had 20 thoughts."""
    count = 0
    for number in range(10 * THOUGHTS):
        if count >= THOUGHTS:
            break
        content = f"The route table of vnet-{number} sends 10.{number}.0.0/16 to a virtual appliance since {number}:00"
        body = json.dumps({"source": "cli", "content": content}).encode()
        for path, data in (("/stimuli", body), ("/cycle", b"")):
            request = urllib.request.Request(ghost + path, data, {"Content-Type": "application/json"})
            urllib.request.urlopen(request).close()
        count = json.loads(_get(f"{ghost}/wm"))["count"]
    return count


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def _wrk(url: str, seconds: int) -> Measured:
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "--latency", url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    if rate is None:
        raise SystemExit(f"wrk said something else:\n{text}")
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    errors = (int(failed[1]) if failed else 0) + (sum(map(int, broken.groups())) if broken else 0)
    return Measured(float(rate[1]), _percentile(text, "50%"), _percentile(text, "99%"), errors)


def _percentile(text: str, name: str) -> float:
    found = re.search(rf"^\s+{name}\s+([\d.]+)(us|ms|s|m)$", text, re.MULTILINE)
    return float(found[1]) * _UNITS_MS[found[2]] if found else float("nan")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
