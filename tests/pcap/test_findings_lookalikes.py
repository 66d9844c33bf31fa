"""Faults and what looks like them, side by side: each is told from its counterpart, wherever it was captured."""

from __future__ import annotations

from pathlib import Path

from .labelled import (
    appliances,
    balancers,
    certificates,
    contradicting_answers,
    datagrams,
    floods_and_scans,
    icmp_messages,
    idle_connections,
    many_clients,
    missing_names,
    nat,
    neighbours,
    older_tls,
    path_directions,
    refused_requests,
    reset_after_accept,
    restarts,
    server_push,
    small_captures,
    takeovers,
)
from .labelled.scene import judged, judged_samples, told

MODULES = (
    appliances, balancers, certificates, contradicting_answers, datagrams, floods_and_scans, icmp_messages,
    idle_connections, many_clients, missing_names, nat, neighbours, older_tls, path_directions, refused_requests,
    reset_after_accept, restarts, server_push, small_captures, takeovers,
)  # fmt: skip
SCENES = [scene for module in MODULES for scene in module.SCENES.values()]
MINOR = ("LOW", "INFO")


def test_what_only_looks_like_a_fault_raises_no_alarm(tmp_path: Path) -> None:
    wrong = []
    for scene in SCENES:
        for place, found in judged_samples(scene, tmp_path) if scene.kind == "none" else ():
            low = [(finding.kind, finding.blame) for finding in found if finding.severity == "LOW"]
            alarms = [finding for finding in found if finding.severity not in MINOR]
            if alarms or low != list(low if scene.low is None else scene.low):
                wrong.append((place, told(found)))
    assert not wrong


def test_a_fault_that_resembles_health_is_the_only_finding_that_matters(tmp_path: Path) -> None:
    wrong = []
    for scene in SCENES:
        for place, found in judged_samples(scene, tmp_path) if scene.kind != "none" else ():
            first = found[0]
            others = [f"{f.severity} {f.kind} {f.blame}" for f in found[1:] if f.severity not in MINOR]
            right = (first.kind, first.blame, first.severity) == (scene.kind, scene.blame, scene.severity)
            numbers = scene.measured.items() <= first.measured.items()
            if not (right and numbers and first.evidence and others == list(scene.others)):
                wrong.append((place, told(found)))
    assert not wrong


def test_a_handshake_that_the_client_leaves_names_what_is_wrong_with_the_certificate(tmp_path: Path) -> None:
    named = {
        "certificate_of_another_site": "the certificate is for “www.",
        "certificate_ended": "the certificate expired on 2023-11-1",
        "certificate_of_tomorrow": "the certificate is not valid before 2023-11-1",
        "intermediate_left_out": "the certificate comes without its intermediate certificate",
        "self_signed": "the certificate is self-signed",
    }
    for name, said in named.items():
        for place, found in judged_samples(certificates.SCENES[name], tmp_path):
            assert said in found[0].title, (place, told(found))


def test_quic_that_races_tcp_is_not_mentioned_where_it_is_answered_at_times(tmp_path: Path) -> None:
    for name in ("quic_that_is_answered_late", "quic_that_loses_the_race_at_times"):
        for place, found in judged_samples(datagrams.SCENES[name], tmp_path):
            assert [finding.kind for finding in found] == ["none"], (place, told(found))


def test_a_name_that_is_needed_is_named_before_those_that_were_tried(tmp_path: Path) -> None:
    scene = missing_names.SCENES["needed_name_behind_a_browsers"]
    first = judged(scene.save(tmp_path / "scene.pcap", 11, "client"))[0]
    assert first.title.startswith("“orders-db.prod.example”")
    assert "orders-db.prod.example" in first.remediation[0].command
