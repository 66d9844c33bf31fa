"""Captures whose fault is known: scenes on a small simulated network with seeded addresses, ports and places."""
