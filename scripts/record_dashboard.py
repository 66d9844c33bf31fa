"""Makes `docs/dashboard.png` from a real investigation of the lab: `python scripts/record_dashboard.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent.parent / "docs" / "dashboard.png"
GHOST = Path(sys.executable).with_name("ghost")


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        run = {"cwd": workspace, "stdin": subprocess.DEVNULL, "text": True}
        subprocess.run([GHOST, "investigate", "--lab", "blocked-port", "--brain", "offline"], **run, check=True)
        with subprocess.Popen([GHOST, "serve", "--port", "0"], **run, stderr=subprocess.PIPE) as server:
            try:
                address = next(word for line in server.stderr for word in line.split() if word.endswith("/ui"))
                take(address)
            finally:
                server.terminate()


def take(address: str) -> None:
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme="dark")
        page.goto(f"{address}#/investigations")
        page.locator(".investigation a").click()
        page.wait_for_selector(".timeline")
        page.wait_for_function("document.querySelector('.connection').dataset.state === 'live'")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
