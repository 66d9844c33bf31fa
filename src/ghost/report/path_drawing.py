"""The path of a report as a picture: one SVG that holds all it needs, for a page of any theme, 384 px wide.

From the source down: a box for each hop, the fault in red with its rule, and what the packet does not reach in grey. A
way back without a fault is one line. Names are of others: each is made visible, shortened and escaped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from ghost.text import one_line, plural, visible

WIDTH: Final = 384
MAX_HOPS: Final = 60
"""Of a leg: more are no path, but a damaged file."""
MAX_TITLE: Final = 600
LINE_X, BOX_X, BOX_WIDTH, GAP, BREAK = 26, 46, 326, 10, 20
"""Distances in px. `BREAK`: of the broken line behind a fault."""
_INNER: Final = BOX_WIDTH - 22
_KINDS: Final = {
    "machine": "VM", "guest": "Inside the VM", "wire": "On the wire", "name": "DNS", "zone": "DNS zone",
    "alias": "DNS alias", "nat": "NAT", "interface": "Network interface", "sql": "SQL server", "route": "Route at",
}  # fmt: skip
_RULES: Final = {
    "security_group": "Rule", "admin_rule": "Rule", "firewall": "Rule", "guest": "Rule", "route": "Route",
    "peering": "Peering", "zone": "Record",
}  # fmt: skip
_MARKS: Final = {"pass": "✓", "rewrite": "⇄", "drop": "✗", "reject": "✗", "at_fault": "✗"}
_DNS: Final = ("name", "zone", "alias")
_SERVICES: Final = ("service", "storage", "sql", "redis", "key_vault")
_OUTCOMES: Final = {"passes": "passes", "blocked": "blocked", "unknown": "not known"}
_LIGHT: Final = (
    "--bg:#fff;--ink:#1f2328;--dim:#59636e;--edge:#d1d9e0;--box:#f6f8fa;--ok:#1a7f37;--no:#cf222e;--no-bg:#ffebe9;"
    "--may:#9a6700;--new:#0969da"
)
_DARK: Final = (
    "--bg:#0d1117;--ink:#f0f6fc;--dim:#9198a1;--edge:#3d444d;--box:#161b22;--ok:#3fb950;--no:#f85149;--no-bg:#3c1618;"
    "--may:#d29922;--new:#4493f8"
)
_CLASSES: Final = {
    "text": "font-size:12px;fill:var(--ink)",
    ".b": "font-weight:600",
    ".h": "font-size:15px;font-weight:600",
    ".d": "fill:var(--dim);font-size:11px",
    ".m": "font-weight:700;fill:#fff;text-anchor:middle",
    ".e": "text-anchor:end",
    ".bg": "fill:var(--bg)",
    ".box": "fill:var(--box);stroke:var(--edge)",
    ".no .box": "fill:var(--no-bg);stroke:var(--no);stroke-width:2",
    ".off .box": "fill:none;stroke-dasharray:3 3",
    ".off text": "fill:var(--dim);font-weight:400",
    ".line": "stroke:var(--dim);stroke-width:2",
    ".cut": "stroke:var(--no);stroke-dasharray:3 4",
    ".gone": "stroke:var(--edge);stroke-dasharray:3 4",
    ".dot": "fill:var(--bg);stroke:var(--dim);stroke-width:2",
    ".ok .dot": "fill:var(--ok);stroke:none",
    ".no .dot": "fill:var(--no);stroke:none",
    ".may .dot": "fill:var(--may);stroke:none",
    ".new .dot": "fill:var(--new);stroke:none",
    ".t-no": "fill:var(--no);font-weight:600",
    ".t-ok": "fill:var(--ok);font-weight:600",
    ".t-may": "fill:var(--may);font-weight:600",
}
STYLE: Final = (
    f".ghost-path{{{_LIGHT};max-width:100%;height:auto;font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;"
    "print-color-adjust:exact}"
    f"@media screen and (prefers-color-scheme:dark){{.ghost-path{{{_DARK}}}}}"
) + "".join(f".ghost-path {of}{{{told}}}" for of, told in _CLASSES.items())


def path_picture(path: Mapping[str, Any]) -> str:
    """Return an SVG of one entry of a report's `path`. Fields that are missing or of another type are left out."""
    hops = [hop for hop in _listed(path.get("hops")) if isinstance(hop, Mapping)]
    there = [hop for hop in hops if hop.get("leg") != "return"][:MAX_HOPS]
    back = [hop for hop in hops if hop.get("leg") == "return"][:MAX_HOPS]
    drawn = _Drawing()
    _heading(drawn, path, hops)
    _leg(drawn, _end(path, "source"), there, _end(path, "destination"))
    if any(_is_bad(hop) for hop in back):
        drawn.y += 28
        drawn.text(12, "The answer", "b")
        drawn.y += 8
        _leg(drawn, _end(path, "destination"), back, _end(path, "source"))
    else:
        _summed_up(drawn, there, back)
    identity = "ghost-path-" + hashlib.sha256(repr(path).encode("utf-8", "replace")).hexdigest()[:10]
    height, body = drawn.y + 14, "".join(drawn.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ghost-path" role="img" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" aria-labelledby="{identity}-title {identity}-desc">'
        f'<title id="{identity}-title">{_shown(_headline(path), MAX_TITLE)}</title>'
        f'<desc id="{identity}-desc">{_shown(_in_words(hops), 4000)}</desc><style>{STYLE}</style>'
        f'<rect class="bg" width="{WIDTH}" height="{height}" rx="6"/>{body}</svg>'
    )


@dataclass
class _Drawing:
    """What was drawn so far, from the top to `y`."""

    parts: list[str] = field(default_factory=list)
    y: int = 0

    def text(self, x: int, words: str, style: str = "", width: float = WIDTH - 24, size: float = 12) -> None:
        """Write one line on the base line `y`; words that are too long are shortened in the middle."""
        self.parts.append(f'<text x="{x}" y="{self.y}" class="{style}">{escape(_fitted(words, width, size))}</text>')

    def line(self, top: int, bottom: int, style: str = "") -> None:
        self.parts.append(f'<path class="line {style}" d="M{LINE_X} {top}V{bottom}"/>')


def _heading(drawn: _Drawing, path: Mapping[str, Any], hops: Sequence[Mapping[str, Any]]) -> None:
    source, destination = _end(path, "source"), _end(path, "destination")
    drawn.y = 26
    for words, x in ((source.name, 12), (f"→ {destination.name}", 12)):
        drawn.text(x, words, "h", size=15.5)
        drawn.y += 20
    outcome = _string(path.get("outcome"))
    faults = [hop for hop in hops if _is_fault(hop)]
    passes, is_known = outcome == "passes", outcome in _OUTCOMES
    style = "t-no" if outcome == "blocked" or faults else "t-ok" if passes else "t-may"
    told = _OUTCOMES[outcome] if is_known else "not known"
    if faults and passes:
        told = f"fault {_kind(faults[0])[:1].lower()}{_kind(faults[0])[1:]}"
    drawn.text(12, f"{_traffic(path)}: {told}", style)
    drawn.y += 10


@dataclass(frozen=True)
class _End:
    name: str
    address: str


def _end(path: Mapping[str, Any], which: str) -> _End:
    flow = path.get("flow")
    address = _string(flow.get(which)) if isinstance(flow, Mapping) else ""
    return _End(_string(path.get(f"{which}_name")) or address or "?", address)


def _leg(drawn: _Drawing, start: _End, hops: Sequence[Mapping[str, Any]], end: _End) -> None:
    """Draw the way from one end to the other: solid until the fault, broken behind it."""
    _terminal(drawn, start)
    style, is_reached = "", True
    for hop in hops:
        is_reached = hop.get("reached") is not False
        gap = BREAK if style == "cut" else GAP
        drawn.line(drawn.y, drawn.y + gap, style)
        drawn.y += gap
        _box(drawn, hop, is_reached=is_reached)
        style = "cut" if _is_fault(hop) else "" if is_reached else "gone"
    stop = next((hop for hop in hops if _is_fault(hop) or _stops(hop)), {})
    arrives = is_reached and not _stops(stop)
    gap = BREAK if style == "cut" else GAP
    drawn.line(drawn.y, drawn.y + gap, style)
    drawn.y += gap
    _terminal(drawn, end, "" if arrives else "does not accept it" if _is_at_end(stop) else "not reached")


def _terminal(drawn: _Drawing, end: _End, missed: str = "") -> None:
    """Draw an end. `missed`: why the packet does not come to it; empty if it does."""
    drawn.y += 2
    drawn.parts.append(
        f'<g class="{"off" if missed else ""}"><title>{_shown(f"{end.name} {end.address}", MAX_TITLE)}</title>'
        f'<circle class="dot" cx="{LINE_X}" cy="{drawn.y + 8}" r="6"/>'
    )
    drawn.y += 12
    address = f"  {end.address}" if end.address not in ("", end.name) and end.name != "the internet" else ""
    drawn.text(BOX_X, f"{end.name}{address}{f': {missed}' if missed else ''}", "b", BOX_WIDTH, 12.5)
    drawn.parts.append("</g>")
    drawn.y += 2


def _box(drawn: _Drawing, hop: Mapping[str, Any], *, is_reached: bool) -> None:
    verdict, top = _string(hop.get("verdict")), drawn.y
    is_bad = _is_bad(hop)
    if not is_reached:
        style, mark = "off", ""
    else:
        mark = _MARKS.get(verdict, "?")
        style = {"✓": "ok", "⇄": "new", "✗": "no"}.get(mark, "may")
    lines = list(_below(hop, is_bad=is_bad and is_reached))
    height = 24 + 15 * len(lines)
    reason = _string(hop.get("reason"))
    full = f"{_kind(hop)} {_string(hop.get('name'))}: {verdict.replace('_', ' ')}. {reason}"
    drawn.parts.append(
        f'<g class="{style}"><title>{_shown(full, MAX_TITLE)}</title>'
        f'<rect class="box" x="{BOX_X}" y="{top}" width="{BOX_WIDTH}" height="{height}" rx="5"/>'
    )
    drawn.line(top, top + height, "" if is_reached else "gone")
    drawn.parts.append(
        f'<circle class="dot" cx="{LINE_X}" cy="{top + 16}" r="{9 if mark else 6}"/>'
        f'<text class="m" x="{LINE_X}" y="{top + 20}">{mark}</text>'
    )
    drawn.y = top + 17
    beside = _stopping(hop) if is_reached else "not reached"
    beside = beside or {"Inbound": "in", "Outbound": "out"}.get(_string(hop.get("direction")), "")
    beside = beside or ("runs" if _runs(hop) else "")
    room = _INNER - _measured(beside, 11) - 8
    kind, name = _kind(hop), _string(hop.get("name"))
    drawn.parts.append(
        f'<text x="{BOX_X + 10}" y="{drawn.y}"><tspan class="d">{escape(kind)}</tspan> '
        f'<tspan class="b">{escape(_fitted(name, room - _measured(kind, 11) - 4, 12))}</tspan></text>'
    )
    if beside:
        style = "e t-no" if is_reached and _stopping(hop) else "e d"
        drawn.parts.append(f'<text x="{BOX_X + BOX_WIDTH - 10}" y="{drawn.y}" class="{style}">{beside}</text>')
    for words, style in lines:
        drawn.y += 15
        drawn.text(BOX_X + 10, words, style, _INNER, {"b": 12.5, "d": 11}.get(style, 12))
    drawn.parts.append("</g>")
    drawn.y = top + height


def _below(hop: Mapping[str, Any], *, is_bad: bool) -> Iterator[tuple[str, str]]:
    """Yield what a box says below its name: its rule, or what it changes; of a fault its rule and the reason."""
    rule, reason = (_string(hop.get(name)).replace("->", "→") for name in ("rule", "reason"))
    if is_bad:
        if rule:
            named = f"{_RULES.get(_string(hop.get('kind')), 'Setting')}: {rule}"
            yield from ((line, "b") for line in _wrapped(named, _INNER, 12.5, 3))
        yield from ((line, "") for line in _wrapped(reason.removeprefix(rule), _INNER, 12, 5))
    elif hop.get("verdict") == "rewrite":
        yield from ((line, "d") for line in _wrapped(reason, _INNER, 11, 4))
    elif not _runs(hop) and hop.get("kind") != "internet":
        yield from ((line, "d") for line in _wrapped(rule or reason, _INNER, 11, 2))


def _stopping(hop: Mapping[str, Any]) -> str:
    """Return how a hop stops the packet; empty if it does not."""
    verdict, kind = hop.get("verdict"), hop.get("kind")
    if verdict == "at_fault":
        return "fault here"
    if not _stops(hop):
        return ""
    return (
        "fails here" if kind in _DNS else "refused here" if verdict == "reject" or kind in _SERVICES else "dropped here"
    )


def _summed_up(drawn: _Drawing, there: Sequence[Mapping[str, Any]], back: Sequence[Mapping[str, Any]]) -> None:
    """Write the way back in one line, where nothing on it is at fault."""
    drawn.y += 24
    if back and back[0].get("reached") is not False:
        drawn.text(12, f"← The answer: {plural(len(back), 'hop')} back, all pass.", "t-ok")
        return
    stop: Mapping[str, Any] = next((hop for hop in there if _is_fault(hop) or _stops(hop)), {})
    told = "No answer: the packet does not arrive."
    if not _stops(stop):
        told = "The return path was not walked."
    elif stop.get("kind") in _DNS:
        told = "Nothing is sent: the name gives no address that works."
    elif _is_at_end(stop):
        told = "No answer: the packet arrives and is not accepted."
    drawn.text(12, f"← {told}", "d", size=11)


def _headline(path: Mapping[str, Any]) -> str:
    ends = f"{_end(path, 'source').name} to {_end(path, 'destination').name}"
    return f"Path of {_traffic(path)} from {ends}: {_string(path.get('outcome')) or 'not known'}"


def _in_words(hops: Sequence[Mapping[str, Any]]) -> str:
    """Return the hops for who does not see them."""
    told = []
    for hop in hops[:MAX_HOPS]:
        verdict = _string(hop.get("verdict")).replace("_", " ") if hop.get("reached") is not False else "not reached"
        why = f" ({_string(hop.get('reason'))})" if _is_bad(hop) else ""
        told.append(f"{_kind(hop)} {_string(hop.get('name'))} {verdict}{why}")
    return "; ".join(told)


def _runs(hop: Mapping[str, Any]) -> bool:
    return hop.get("kind") == "machine" and hop.get("verdict") == "pass"


def _traffic(path: Mapping[str, Any]) -> str:
    flow = path.get("flow")
    if not isinstance(flow, Mapping):
        return "Traffic"
    port = flow.get("port")
    return f"{_string(flow.get('protocol')).upper() or 'Traffic'}{f' port {port}' if isinstance(port, int) else ''}"


def _kind(hop: Mapping[str, Any]) -> str:
    kind = _string(hop.get("kind"))
    return _KINDS.get(kind) or one_line(kind.replace("_", " "), 24).capitalize() or "Hop"


def _is_fault(hop: Mapping[str, Any]) -> bool:
    return hop.get("fault") is True


def _stops(hop: Mapping[str, Any]) -> bool:
    return hop.get("verdict") in ("drop", "reject") or (hop.get("kind") == "guest" and hop.get("verdict") == "at_fault")


def _is_at_end(hop: Mapping[str, Any]) -> bool:
    return hop.get("kind") == "guest" or hop.get("kind") in _SERVICES


def _is_bad(hop: Mapping[str, Any]) -> bool:
    """Return whether a hop is worth a box on the way back, and its reason: a fault, a drop, or not known."""
    return _is_fault(hop) or hop.get("verdict") not in ("pass", "rewrite")


# Text of others


def _string(value: Any) -> str:
    return visible(str(value)[:2000]) if isinstance(value, str | int | float) else ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _shown(words: str, limit: int) -> str:
    return escape(one_line(words, limit))


def _measured(words: str, size: float) -> float:
    """Return the width of a text in px, on the safe side."""
    return size * sum(map(_width, words))


def _width(letter: str) -> float:
    """Return the width of a letter in em, in a wide font."""
    if letter in "MWmw@%…—" or east_asian_width(letter) in "WF":
        return 1.05
    if letter in "iljtfr.,:;'|!()[] -":
        return 0.4
    return 0.76 if letter.isupper() else 0.62


def _wrapped(words: str, width: float, size: float, limit: int) -> list[str]:
    """Return a text in lines of at most `width` px; one that needs more than `limit` ends with an ellipsis."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if _measured(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    lines = [line for line in lines if line]
    if len(lines) <= limit:
        return lines
    last = lines[limit - 1]
    return [*lines[: limit - 1], f"{last.rpartition(' ')[0] or last} …"]


def _fitted(words: str, width: float, size: float) -> str:
    """Return a text that is at most `width` px wide, shortened in the middle."""
    kept = len(words)
    shown = words
    while kept > 1 and _measured(shown, size) > width:
        kept = min(kept - 1, int(kept * width / _measured(shown, size)) + 1)
        shown = f"{words[: kept - kept // 2]}…{words[len(words) - kept // 2 :]}"
    return shown
