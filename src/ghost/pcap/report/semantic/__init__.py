"""The compact machine-readable summary: counts, not lists; never a payload byte; bounded whatever the capture holds.

A section without traffic is left out, and so is a counter of a single conversation that is zero. Lists are cut until
the whole fits; every cut list stands beside the total it was cut from.

    semantic_document     the whole document, cut to size
    transport_sections    capture, ARP, ICMP, TCP, UDP
    application_sections  DNS, TLS, HTTP, DHCP, NTP, QUIC
    conversation_summary  the findings with the busiest conversations
    value_format          how single values are written
    token_budget          cuts a document to a number of tokens
"""

from ghost.pcap.report.semantic.conversation_summary import FINDINGS_TOKENS, MOST_CONVERSATIONS, findings_document
from ghost.pcap.report.semantic.semantic_document import AIM_TOKENS, MOST_TOKENS, semantic
from ghost.pcap.report.semantic.token_budget import dump, estimated_tokens

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
