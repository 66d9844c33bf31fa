"""Which records of a session tell how the network is: for its snapshot, and for sessions that go on with them."""

from __future__ import annotations

from ghost.agent.audit_evidence import Evidence
from ghost.agent.facts import CHANGES_NO_NETWORK
from ghost.shell import RISKY


def reads_since_change(evidence: Evidence) -> dict[str, str]:
    """Return the ids of the reads that ended by themselves, the last of each command, by command in their order.

    None from before a command that may have changed the network, whether or not it ended well.
    """
    reads: dict[str, str] = {}
    for audit_id, record in evidence.items():
        command, status = str(record["command"]), record["status"]
        if record["classification"] == RISKY and status != "denied" and not command.startswith(CHANGES_NO_NETWORK):
            reads.clear()
        elif status == "completed" and command.startswith(("az ", "dig ")) and record["modified_command"] is None:
            reads.pop(command, None)
            reads[command] = audit_id
    return reads
