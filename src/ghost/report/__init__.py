"""Renders a root-cause report: Markdown, HTML, plain text, and the path as a picture."""

from ghost.report.path_drawing import STYLE, path_picture

__all__ = ["STYLE", "path_picture"]
