"""Model servers on loopback that speak the vendors' APIs, refuse what the vendors refuse and answer by a script."""
