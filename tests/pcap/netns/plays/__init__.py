"""All plays; importing them registers their scenes."""

from tests.pcap.netns.plays import healthy, mixed, names, paths, reach, services

__all__ = ["healthy", "mixed", "names", "paths", "reach", "services"]
