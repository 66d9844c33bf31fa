"""Text that nobody here wrote: help of `az network`, and manual pages, as this machine has them; questions about it.

The questions were written from the texts' meaning, mostly without their words, and frozen before the first search. Each
has one right text: a command's help, or the paragraph of a page that holds a phrase. Another version of a page may lack
it; such a question is left out and counted.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.mind.retrieval.labelled import CORPORA, Question

QUESTIONS = CORPORA / "retrieval_questions_foreign.jsonl"
OFF_TOPIC = CORPORA / "retrieval_off_topic.txt"
QUESTIONS_SHA256 = "18ace265225ac4f1323efbf26f820098b5870db80544a3410885d348254bb563"
PAGES = (
    *("arp", "bridge", "dig", "dumpcap", "ethtool", "host", "icmp", "ip", "ip-address", "ip-link", "ip-monitor"),
    *("ip-neighbour", "ip-netns", "ip-route", "ip-rule", "ip-tunnel", "ip-xfrm", "iptables", "iptables-extensions"),
    *("nft", "nslookup", "packet", "pcap-filter", "ping", "raw", "resolv.conf", "resolver", "route", "socket", "ss"),
    *("ssh_config", "tc", "tc-netem", "tcp", "tcpdump", "traceroute", "tshark", "udp"),
)
_SHORTEST, _LONGEST = 40, 2000


def az_folder() -> Path | None:
    """The folder of the network module of an installed Azure CLI: GHOST_REAL_AZ, or the one that CI installs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    programs = [Path(os.environ["GHOST_REAL_AZ"])] if "GHOST_REAL_AZ" in os.environ else []
    programs += sorted(cache.glob("ghost-ci/az-*/bin/az"), reverse=True)
    module = "lib/python3*/site-packages/azure/cli/command_modules/network"
    return next((found for az in programs for found in az.parent.parent.glob(module)), None)


def texts() -> dict[str, str]:
    """Id to text. Ids are `az network ...`, or `page(section)#number`."""
    folder = az_folder()
    found = dict(_commands(folder)) if folder else {}
    for page in PAGES:
        found |= _paragraphs(page)
    return found


# --- az ---


def _commands(folder: Path) -> Iterator[tuple[str, str]]:
    said: dict[str, str] = {}
    for file in sorted(folder.rglob("aaz/latest/**/*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (name := _registered(node)) and (text := ast.get_docstring(node)):
                said[name] = text
    for node in ast.parse((folder / "_help.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            name, text = ast.literal_eval(node.targets[0].slice), ast.literal_eval(node.value)
            if "type: group" not in text:
                said[name] = text
    for name, text in sorted(said.items()):
        if name.startswith("network "):
            yield f"az {name}", f"az {name}: {' '.join(_without_marks(text).split())}"[:_LONGEST]


def _registered(node: ast.ClassDef) -> str | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "register_command":
            return str(ast.literal_eval(decorator.args[0]))
    return None


def _without_marks(text: str) -> str:
    return re.sub(r":example:|type: command|short-summary:|long-summary:|examples:|- name:|text:|\|\n", " ", text)


# --- manual pages ---


def _paragraphs(page: str) -> dict[str, str]:
    shown = _shown(page)
    head = re.match(r"\s*([^\s(]+\(\w+\))", shown)
    if head is None:
        return {}
    section, tag, found = "", "", dict[str, str]()
    for paragraph in re.split(r"\n\s*\n", shown)[1:-1]:
        lines = paragraph.split("\n")
        if lines[0] and not lines[0][0].isspace():
            section, lines = lines[0].strip(), lines[1:]
        text = " ".join(" ".join(lines).split())
        if not text or section == "SYNOPSIS":
            continue
        if len(text) < _SHORTEST:  # the name of an option, whose text is the next paragraph
            tag = text
            continue
        text, tag = f"{head[1].lower()} {section}: {tag} {text}"[:_LONGEST], ""
        found[f"{head[1].lower()}#{len(found) + 1}"] = text
    return found


def _shown(page: str) -> str:
    """The page as `man` shows it, on lines too long to break a word; empty without it."""
    environment = {"PATH": os.defpath, "MANWIDTH": "150", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    command = ["man", "--no-hyphenation", "--no-justification", "-P", "cat", page]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return ""
    return re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)


# --- questions ---


@dataclass(frozen=True)
class _Row:
    question: str
    where: str
    holds: str


def questions(of: dict[str, str]) -> tuple[list[Question], int]:
    """The questions that these texts answer, and how many they do not."""
    rows = [_Row(**json.loads(line)) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    found = []
    for number, row in enumerate(rows, 1):
        right = [name for name, text in of.items() if name.split("#")[0] == row.where and row.holds in text]
        if len(right) == 1:
            found.append(Question(f"foreign-{number}", row.question, frozenset(right)))
    return found, len(rows) - len(found)


def off_topic() -> list[str]:
    """Questions that no text of either set is about."""
    return OFF_TOPIC.read_text(encoding="utf-8").splitlines()


def digest() -> str:
    return sha256(QUESTIONS.read_bytes()).hexdigest()
