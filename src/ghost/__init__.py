"""Ghost: an investigator of network failures."""

__version__ = "0.1.0"
