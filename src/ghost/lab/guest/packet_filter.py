"""What iptables prints of the text of `iptables-save`: its rules as commands (`-S`) and as a table (`-L`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ghost.lab.guest.shell import NotSimulatedError

_CHAIN = re.compile(r":(?P<name>\S+) (?P<policy>\S+)(?: \[(?P<packets>\d+):(?P<octets>\d+)\])?")
_COLUMNS = {"-p": "prot", "-i": "in", "-o": "out", "-s": "source", "-d": "destination", "-j": "target", "-g": "target"}
_SAID = {
    "--dport": "{p} dpt:{v}", "--sport": "{p} spt:{v}", "--dports": "multiport dports {v}",
    "--sports": "multiport sports {v}", "--ctstate": "ctstate {v}", "--state": "state {v}",
    "--reject-with": "reject-with {v}", "--comment": "/* {v} */", "--to-destination": "to:{v}",
    "--to-source": "to:{v}", "--log-prefix": 'prefix "{v}"', "--icmp-type": "icmptype {v}",
    "--match-set": "match-set {v}", "--limit": "limit: avg {v}", "--limit-burst": "burst {v}",
}  # fmt: skip
_TABLES = ("filter", "nat", "mangle", "raw", "security")
_FILTER = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"


def listed(saved: str, words: Sequence[str]) -> str:
    """Return what `iptables` with these options prints. Raises `NotSimulatedError` for what changes or is unknown."""
    table, chain, asked, plain = "filter", "", "", set("")
    rest = [part for word in words for part in _letters(word)]
    while rest:
        word = rest.pop(0)
        if word in ("-t", "--table"):
            table = rest.pop(0) if rest else ""
        elif word in ("-L", "--list", "-S", "--list-rules"):
            asked = "S" if word in ("-S", "--list-rules") else "L"
            chain = rest.pop(0) if rest and not rest[0].startswith("-") else ""
        elif word in ("-n", "-v", "-x", "-w", "--numeric", "--verbose", "--exact", "--line-numbers", "--wait"):
            plain.add(word.lstrip("-")[0])
        else:
            raise NotSimulatedError(
                f"iptables {' '.join(words)}: not simulated in this lab; there is -L, -S, -n, -v, -t TABLE"
            )
    if not asked or table not in _TABLES:
        raise NotSimulatedError(
            f"iptables {' '.join(words)}: not simulated in this lab; there is -L, -S, -n, -v, -t TABLE"
        )
    return "\n".join(_listing(_table(saved, table), chain, asked, plain))


def _letters(word: str) -> list[str]:
    grouped = re.fullmatch(r"-[A-Za-z]{2,}", word)
    return [f"-{letter}" for letter in word[1:]] if grouped else [word]


def _table(saved: str, table: str) -> list[str]:
    text = saved if f"*{table}\n" in saved else (_FILTER if table == "filter" else "")
    _, _, after = text.partition(f"*{table}\n")
    return [line for line in after.partition("COMMIT")[0].splitlines() if line.strip() and not line.startswith("#")]


def _listing(lines: Sequence[str], chain: str, asked: str, plain: set[str]) -> Iterator[str]:
    chains = {found["name"]: found for line in lines if (found := _CHAIN.match(line)) and chain in ("", found["name"])}
    rules = [(line.partition("-A ")[2].partition(" ")[0], line) for line in lines if not line.startswith(":")]
    if chain and not chains:
        raise NotSimulatedError("iptables: No chain/target/match by that name.")
    if asked == "S":
        for name, found in chains.items():
            yield f"-N {name}" if found["policy"] == "-" else f"-P {name} {found['policy']}"
        yield from (line[line.index("-A ") :] for name, line in rules if name in chains)
        return
    for number, (name, found) in enumerate(chains.items()):
        if number:
            yield ""
        own = [line for owner, line in rules if owner == name]
        counts = f" {found['packets']} packets, {found['octets']} bytes" if "v" in plain and found["packets"] else ""
        references = sum(re.search(rf"-[jg] {re.escape(name)}\b", line) is not None for _, line in rules)
        said = f"{references} references" if found["policy"] == "-" else f"policy {found['policy']}{counts}"
        yield f"Chain {name} ({said})"
        yield from _rows(own, "v" in plain, "l" in plain)


def _rows(rules: Sequence[str], verbose: bool, numbered: bool) -> Iterator[str]:
    head = " pkts bytes target     prot opt in     out     source               destination"
    yield ("num  " if numbered else "") + (head if verbose else "target     prot opt source               destination")
    for number, rule in enumerate(rules, 1):
        cells, more = _cells(rule)
        packets, _, octets = (re.match(r"\[(\d+:\d+)\]", rule) or ["", "0:0"])[1].partition(":")
        row = f"{number:<5}" if numbered else ""
        if verbose:
            row += f"{packets:>5} {octets:>5} {cells['target']:<10} {cells['prot']:<4} --  {cells['in']:<6} "
            row += f"{cells['out']:<7} {cells['source']:<20} {cells['destination']:<20}"
        else:
            row += f"{cells['target']:<10} {cells['prot']:<4} --  {cells['source']:<20} {cells['destination']:<20}"
        yield f"{row} {' '.join(more)}".rstrip()


def _cells(rule: str) -> tuple[dict[str, str], list[str]]:
    cells = {"prot": "0", "in": "*", "out": "*", "source": "0.0.0.0/0", "destination": "0.0.0.0/0", "target": ""}
    words = shlex.split(rule[rule.index("-A ") :])[2:]
    more, negated = [], ""
    while words:
        word = words.pop(0)
        if word == "!":
            negated = "!"
        elif word in ("-m", "--tcp-flags"):
            words.pop(0)
        else:
            values = []
            while words and not words[0].startswith("-") and words[0] != "!":
                values.append(words.pop(0))
            value = " ".join(values)
            if word in _COLUMNS:
                cells[_COLUMNS[word]] = negated + value.removesuffix("/32")
            elif word in _SAID:
                said = _SAID[word].format(p=cells["prot"], v=negated + value)
                more.append(said.replace("dpt:", "dpts:").replace("spt:", "spts:") if ":" in value else said)
            else:
                more.append(f"{negated}{word} {value}".rstrip())
            negated = ""
    return cells, more
