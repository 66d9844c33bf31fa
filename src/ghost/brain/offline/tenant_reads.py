"""The snapshot of the tenant: what walks need is read in rounds, each of which is one turn of independent reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ghost import net
from ghost.brain.offline.azure_reads import Read, Reading
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.steps import Steps
from ghost.net import Answer, Flow, Missing, Network

MAX_ROUNDS: Final = 12
"""Rounds of reads for one set of walks; each asks for something new."""
MAX_READS: Final = 40
"""Reads of one round. A walk that needs more is told as unknown."""


def read_for(
    case: Case,
    flows: Iterable[Flow],
    purpose: str,
    tests: tuple[str, ...] = (),
    changed: Callable[[Network], Network] = lambda network: network,
) -> Steps[None]:
    """Read into `case.network` what the walks of these flows need.

    `changed`: the walks are those of the network that it gives, as with a fault mended; what is kept is as it was read.
    """
    flows = list(flows)
    for _ in range(MAX_ROUNDS):
        reads = [each for each in net.needed(changed(case.network), flows) if each.missing not in case.asked_of_azure]
        if not reads:
            return
        yield from absorb(case, reads[:MAX_READS], purpose, tests)
        purpose = "I read what these answers refer to."


def read_missing(case: Case, missing: Iterable[Missing], purpose: str) -> Steps[None]:
    """Read into `case.network` what is named: one resource, or every one of a type."""
    reads = [net.read_of(case.network, each) for each in missing if each not in case.asked_of_azure]
    if reads:
        yield from absorb(case, reads, purpose, ())


def absorb(case: Case, reads: list[net.Read], purpose: str, tests: tuple[str, ...]) -> Steps[None]:
    commands = [Read(each.argv, f"Needed for the path: {each.missing}.", tests) for each in reads]
    readings = yield from read(case, purpose, *commands)
    for each, reading in zip(reads, readings, strict=True):
        case.asked_of_azure.add(each.missing)
        case.network = net.absorb(case.network, each, _answer(reading))


def _answer(reading: Reading) -> Answer:
    reference = reading.record or ""
    return Answer(reading.text, reference) if reading.ok else Answer("", reference, reading.why)
