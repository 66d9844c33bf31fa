"""Loss of packets that a capture shows: how much, in which direction, and on which side of the capture."""

from __future__ import annotations

import re

from ghost.brain.offline.case import Cause
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.wire_captures import Row
from ghost.brain.offline.wire_traffic import Wire, port_of, who_of


def report_loss(wire: Wire, finding: Row) -> None:
    (sender, resource), (receiver, _) = wire.end_of(finding, sends=True), wire.end_of(finding, sends=False)
    here, comparison = wire.captured, wire.captured.comparison
    losses = comparison.losses(resource) if comparison else {}
    unconfirmed = comparison is not None and bool(comparison.way(resource)) and not losses
    location = _loss_location(finding.get("measured") or {}, here.label, sender, receiver)
    if losses:
        location = f"{'; '.join(losses.values())}, as captures at both ends at the same time show."
    elif unconfirmed:
        location += " The capture at the other end, taken at the same time, does not confirm it."
    elif here.alone_because:
        location += f" Whether on the path or at {receiver} remains undecided: {here.alone_because}."
    between = (
        f"Check the path from {sender} to {receiver}, in that direction: appliances, host maintenance, "
        "the accelerated networking and CPU of the receiver; the configuration that Azure shows allows the traffic."
    )
    places = {
        "near": f"Check {sender}: its queues, CPU and accelerated networking; packets are lost before they leave it.",
        "between": between,
        "far": f"Check {receiver}: its queues, CPU and packet filter; packets are lost after they arrive.",
    }
    narrow_down = (
        f"Narrow down where they are lost: capture at both ends at the same time while the symptom is present, and "
        f"compare the two captures: ghost pcap {sender}.pcap --compare {receiver}.pcap --ends."
    )
    actions = tuple(places[place] for place in losses) or (between, narrow_down)
    wire.case.blame(
        Cause(
            *("wire", LOST, f"Segments from {sender} to {receiver} are lost{_loss_ratio(finding)}, {location}"),
            (*here.audit_ids, *(comparison.audit_ids if comparison else ())),
            actions,
            conclusive=not unconfirmed,
            kind="packet_loss" if resource else "",
            resource=resource,
            port=port_of(finding),
            seen_on=wire.candidate.flow,
            likely=unconfirmed,
        )
    )


def overtaken(wire: Wire, loss: Row) -> bool:
    """Return whether more segments of the same direction were overtaken than lost: late ones pass for lost."""
    measured = loss.get("measured") or {}
    lost = sum(measured.get(f"lost_{side}_capture_point") or 0 for side in ("before", "after"))
    who = who_of(loss)
    return any(
        each.get("kind") == "reordering"
        and (who_of(each).get("src"), who_of(each).get("dst")) == (who.get("src"), who.get("dst"))
        and int((each.get("measured") or {}).get("reordered") or 0) > lost
        for each in wire.captured.findings
    )


def _loss_ratio(finding: Row) -> str:
    """Return the loss ratio from the finding's detail, which counts lost and sent segments."""
    measured = finding.get("measured") or {}
    share = measured.get("loss_pct")
    if share is None:
        return ""
    counted = re.match(r"([\d,]+) of ([\d,]+) segments lost", str(finding.get("detail") or ""))
    repeated, port = measured.get("retransmissions"), port_of(finding)
    seen = f", {repeated} retransmissions seen" if repeated is not None else ""
    seen += f"; port {port}" if port else ""
    if counted:
        lost, sent = (number.replace(",", "") for number in counted.groups())
        return f" ({lost} of {sent} segments, {share}%{seen})"
    lost_in_all = sum(measured.get(f"lost_{side}_capture_point") or 0 for side in ("before", "after"))
    return f" ({f'{lost_in_all} segments, ' if lost_in_all else ''}{share}% of all sent{seen})"


def _loss_location(measured: Row, where: str, sender: str, receiver: str) -> str:
    before, after = measured.get("lost_before_capture_point"), measured.get("lost_after_capture_point")
    if after and not before:
        return f"between the capture at {where} and {receiver}."
    if before and not after:
        return f"between {sender} and the capture at {where}."
    if where == sender:
        return f"after they left the interface of {sender}, where the capture saw them."
    return f"before they reached the interface of {where}, where the capture missed them."
