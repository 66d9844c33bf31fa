"""The compact machine-readable summary: counts, not lists; never a payload byte; bounded whatever the capture holds.

A section without traffic is left out, and so is a counter of a single conversation that is zero. Lists are cut until
the whole fits; every cut list stands beside the total it was cut from.
"""

from ghost.pcap.semantic.budget import dump, estimated_tokens
from ghost.pcap.semantic.conversations import FINDINGS_TOKENS, MOST_CONVERSATIONS, findings_document
from ghost.pcap.semantic.document import AIM_TOKENS, MOST_TOKENS, semantic

__all__ = [
    "AIM_TOKENS",
    "FINDINGS_TOKENS",
    "MOST_CONVERSATIONS",
    "MOST_TOKENS",
    "dump",
    "estimated_tokens",
    "findings_document",
    "semantic",
]
