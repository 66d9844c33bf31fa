"""Reads pages that the allowlist names, as their robots.txt permits."""
