"""Captures made to break the engine, and what it must do with them."""
