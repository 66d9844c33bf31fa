"""What holds in each network: shown on random ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ghost.net import explain, walk
from ghost.net.resources import Guest, Interface
from tests.net.description import described
from tests.net.random_networks import random_flow, random_lines

CASES = 30


def test_less_knowledge_makes_an_outcome_unknown_only_and_mends_do_what_they_claim():
    outcomes = set()
    for seed in range(CASES):
        random = Random(seed)
        lines, places = random_lines(random)
        network = described(lines)
        reversed_order = replace(
            network, resources={of: dict(reversed(list(known.items()))) for of, known in network.resources.items()}
        )
        for packet in [random_flow(random, places) for _ in range(4)]:
            outcome = walk(network, packet).outcome
            outcomes.add(outcome)
            about = f"seed {seed}, {packet}"
            assert walk(reversed_order, packet).outcome == outcome, about
            for of in set(network.resources) - {Guest, Interface}:  # a guest that was not read says nothing
                assert walk(network.without(of), packet).outcome in (outcome, "unknown"), f"{about} without {of.kind}"
            mended = network
            for fault in explain(network, packet):
                if fault.mend is not None:
                    mended = fault.mend.applied(mended)
                    assert walk(mended, packet).outcome == fault.outcome, f"{about}, {fault.mend}"
    assert outcomes == {"passes", "blocked", "unknown"}
