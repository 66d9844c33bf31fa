"""The pages for people stay short, and every relative link in them leads to a file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
WORDS = 20_000
GENERATED_PAGES = {"az-table.md"}
INDEX_PAGES = {"requirements.md"}  # an index of tests, looked up and not read; tests/test_requirements.py checks it
GENERATED_BLOCK = re.compile(r"<!-- (\w+): generated -->.*?<!-- \1: end -->", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_all_pages_together_keep_to_the_limit_of_words() -> None:
    words = {
        page.name: len(GENERATED_BLOCK.sub("", page.read_text(encoding="utf-8")).split())
        for page in PAGES
        if page.name not in GENERATED_PAGES | INDEX_PAGES
    }
    assert sum(words.values()) <= WORDS, words


def test_every_relative_link_leads_to_a_file() -> None:
    links = [(page, target) for page in PAGES for target in LINK.findall(page.read_text(encoding="utf-8"))]
    files = [(page, target.partition("#")[0]) for page, target in links if "://" not in target]
    assert len(files) > 20
    assert not [(page.name, target) for page, target in files if target and not (page.parent / target).exists()]
