"""All plays; importing them registers their scenes."""

from tests.pcap.netns.plays import healthy, names, paths, reach, services

__all__ = ["healthy", "names", "paths", "reach", "services"]
