"""Shows a page that was written to the person at the terminal, where there is a display to show it on."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path


def open_page(path: Path) -> None:
    """Opens `path` in the browser; without a display, or without a browser, says where it is."""
    if has_display() and webbrowser.open(path.resolve().as_uri()):
        return
    sys.stderr.write(f"no display here: open {path.resolve().as_uri()} in a browser\n")  # quoted, whatever it is called


def has_display() -> bool:
    if sys.platform != "linux":
        return True
    # On a terminal without a display `webbrowser` would start a text browser in it.
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
