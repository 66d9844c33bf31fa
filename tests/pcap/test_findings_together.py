"""Which failures are one finding, and what is left of one when a part of it is explained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ghost.pcap.findings.common_causes import failure_groups, merged_finding
from ghost.pcap.findings.correlation import without_explained
from ghost.pcap.findings.finding import Finding, Who

SERVER = "10.0.2.4"


def groups(pairs: Sequence[tuple[int, int]], *, near_client: bool = True) -> list[list[tuple[int, int]]]:
    """Of (service, client)."""
    served, clients = (np.array(end, np.int64) for end in zip(*pairs, strict=True))
    return [[pairs[place] for place in some] for some in failure_groups(served, clients, near_client=near_client)]


def test_a_service_that_fails_many_clients_is_one_cause_and_two_services_are_two() -> None:
    pairs = [(1, 10), (1, 11), (1, 12), (2, 20), (2, 21)]
    assert groups(pairs) == [pairs[:3], pairs[3:]]


def test_a_client_that_fails_with_many_services_is_one_cause_where_it_can_lie_near_it() -> None:
    pairs = [(service, 10) for service in (1, 2, 3, 4)]
    assert groups(pairs) == [pairs]
    assert sorted(groups(pairs, near_client=False)) == [[pair] for pair in pairs]
    assert len(groups(pairs[:2])) == 2, "two services may fail it for two reasons"


def test_a_failure_belongs_to_the_end_that_has_more_of_them() -> None:
    of_service = [(1, client) for client in (10, 11, 12, 13, 14)]
    of_client = [(service, 10) for service in (2, 3, 4)]
    assert groups(of_service + of_client) == [of_service, of_client]


def test_many_clients_of_many_services_are_one_cause_each_service() -> None:
    pairs = [(service, client) for service in (1, 2, 3) for client in (10, 11, 12)]
    assert groups(pairs) == [pairs[:3], pairs[3:6], pairs[6:]]


def finding(kind: str, who: Who, severity: str = "HIGH", weight: float = 1) -> Finding:
    return Finding(kind, severity, "network", "TCP", "", "", who, (1,), "", (), "high", weight)


def lossy(clients: Sequence[str]) -> Finding:
    return merged_finding(
        clients, lambda some: finding("loss", Who(SERVER, some[0], 80), weight=len(some)),
        lambda client: Who(SERVER, client, 80),
    )  # fmt: skip


def test_what_another_finding_explains_of_some_hosts_is_left_out_of_the_others() -> None:
    hole = finding("mtu_black_hole", Who(SERVER, "10.0.0.1", 443))
    _, rest = without_explained([hole, lossy(["10.0.0.1", "10.0.0.2", "10.0.0.3"])])
    assert (rest.who.dst, rest.weight) == ("10.0.0.2", 2)
    assert rest.other_pairs == (Who(SERVER, "10.0.0.3", 80),)


def test_what_is_explained_of_every_host_is_gone_and_what_is_of_none_is_whole() -> None:
    holes = [finding("mtu_black_hole", Who(SERVER, client)) for client in ("10.0.0.1", "10.0.0.2")]
    assert without_explained([*holes, lossy(["10.0.0.1", "10.0.0.2"])]) == holes
    others = lossy(["10.0.0.8", "10.0.0.9"])
    assert without_explained([*holes, others])[-1] is others


def test_a_cause_about_many_hosts_explains_the_symptoms_of_each() -> None:
    holes = merged_finding(
        ["10.0.0.1", "10.0.0.2"], lambda some: finding("mtu_black_hole", Who(SERVER, some[0], 80)),
        lambda client: Who(SERVER, client, 80),
    )  # fmt: skip
    symptoms = [finding("rto_loss", Who(SERVER, client, 80)) for client in ("10.0.0.1", "10.0.0.2")]
    assert without_explained([holes, *symptoms]) == [holes]
