"""Measures investigations: what a report says against the truth of a scenario.

Right is kind and resource of the report's structured causes. No text is compared and no model asked.
"""
