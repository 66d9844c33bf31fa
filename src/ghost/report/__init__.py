"""Renders a root-cause report: Markdown, HTML, plain text, and the path as a picture.

Each form is written from the report's JSON alone.
"""

from ghost.report.capture_plots import drawn, page_of
from ghost.report.path_drawing import STYLE, path_picture
from ghost.report.rca_blocks import Content, Files
from ghost.report.rca_content import SIMULATED, content_of, next_commands, place_of
from ghost.report.rca_markdown import as_markdown
from ghost.report.rca_page import as_page
from ghost.report.rca_wording import LAYERS
from ghost.report.ticket import as_text

__all__ = [
    "LAYERS",
    "SIMULATED",
    "STYLE",
    "Content",
    "Files",
    "as_markdown",
    "as_page",
    "as_text",
    "content_of",
    "drawn",
    "next_commands",
    "page_of",
    "path_picture",
    "place_of",
]
