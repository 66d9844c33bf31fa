"""What a change of a peering does to the states of both its ends.

https://learn.microsoft.com/azure/virtual-network/virtual-network-troubleshoot-peering-issues
"""

from __future__ import annotations

from typing import Any

from ghost.lab.arm.api_messages import bad_request
from ghost.lab.edits import Edit
from ghost.lab.tenant import Body, Documents, folded

_PART = "/virtualNetworkPeerings/"


def peering_edits(documents: Documents, own_id: str, properties: dict[str, Any]) -> list[Edit]:
    """Set the state of a peering that is put, and return the edits of its other end.

    Raises `ArmError` where the other end is disconnected: it has to be made anew first.
    """
    if _PART not in own_id:
        return []
    other = _other_end(documents, own_id, properties)
    if other is not None and other["properties"]["peeringState"] == "Disconnected":
        raise bad_request(
            f"Cannot create or update peering {own_id} because remote peering {other['id']} referencing parent virtual "
            f"network {own_id.partition(_PART)[0]} is in Disconnected state. Update or re-create the remote peering to "
            "get it back to Initiated state.",
            "RemotePeeringIsDisconnected",
        )
    properties["peeringState"] = "Initiated" if other is None else "Connected"
    properties.setdefault("peeringSyncLevel", "FullyInSync" if other else "RemoteNotInSync")
    properties.setdefault("doNotVerifyRemoteGateways", False)
    return [] if other is None else [Edit(patch=other["id"], properties={"peeringState": "Connected"})]


def parting_edits(documents: Documents, peering: Body) -> list[Edit]:
    """Return the edits of the other end of a peering that is deleted."""
    other = _other_end(documents, peering["id"], peering["properties"]) if _PART in peering["id"] else None
    return [] if other is None else [Edit(patch=other["id"], properties={"peeringState": "Disconnected"})]


def _other_end(documents: Documents, own_id: str, properties: dict[str, Any]) -> Body | None:
    own, remote = own_id.partition(_PART)[0], properties.get("remoteVirtualNetwork", {}).get("id", "")
    for peering in documents.parts(remote, "virtualNetworkPeerings") or []:
        if folded(peering["properties"]["remoteVirtualNetwork"]["id"]) == folded(own):
            return peering
    return None
