"""Stimuli as a server gets them: reports, changes, owners, alerts, causes, small talk, and the audit's successes."""

from __future__ import annotations

from random import Random

from ghost.mind import Stimulus
from tests.mind.minds import START

_WORDS = ["shop", "pay", "auth", "web", "db", "cache", "mail", "log", "hub", "edge", "queue", "geo", "stock", "cart"]
_PEOPLE = ["Ana", "Kofi", "Lena", "Omar", "Priya", "Tom", "Yuki", "Ivan"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
_PORTS = ["22", "443", "5432", "6379", "8080", "1433", "53", "3306", "8443", "9092"]
_TEXTS = """
{vm} cannot reach {other} on port {port}
{vm} times out to {ip}:{port} since {clock}
{who} moved {vm} to {ip} on {day}
rule deny-{word} was added to {word2}-nsg by {who}
{word}-rt now sends 10.{n}.0.0/16 to {ip}
{who} owns {vm} from {day} on
alert: {vm} answers slowly, p95 {n}00 ms
the certificate of {word}.example.com expires on 2026-03-1{digit}
root cause: {word}-nsg denied {port} from {vm}
{vm} was restarted at {clock}
the peering of {word}-vnet is disconnected
nothing listens on {port} at {vm}
all quiet
thanks
"""


def mixed(count: int, seed: int = 7) -> list[Stimulus]:
    random = Random(seed)
    return [_stimulus(random, number) for number in range(count)]


def _stimulus(random: Random, number: int) -> Stimulus:
    name = f"stim:{int(START * 1000)}_{number + 2}"
    if random.random() < 0.35:
        session = f"ghost_2026{random.randrange(1000, 1228)}_{random.randrange(100000, 235959)}"
        told = f"ran a command that ended with exit status 0: az vm list (safe), record {session}_{number:03}."
        return Stimulus(id=name, source="audit", content=f"Investigation {session} {told}", ts=START)
    filled = {
        "vm": f"{random.choice(_WORDS)}-vm{random.randrange(9)}",
        "other": f"{random.choice(_WORDS)}-vm",
        "word": random.choice(_WORDS),
        "word2": random.choice(_WORDS),
        "port": random.choice(_PORTS),
        "ip": f"10.{random.randrange(4)}.{random.randrange(9)}.{random.randrange(4, 250)}",
        "clock": f"{random.randrange(24):02}:{random.randrange(60):02}",
        "who": random.choice(_PEOPLE),
        "day": random.choice(_DAYS),
        "n": random.randrange(250),
        "digit": random.randrange(10),
    }
    return Stimulus(
        id=name, source="monitor", content=random.choice(_TEXTS.strip().splitlines()).format(**filled), ts=START
    )
