"""The HTTP API of the mind, its events and its dashboard."""
