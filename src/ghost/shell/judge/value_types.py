"""The types that a policy table may give to an option's value or an operand.

A type is written in the table as its name and its parameters, alternatives joined by ` | `:
`INT 1..100`, `NUMBER 0.2..60`, `WORD a b c`, `INTERFACE | ADDRESS`, `MATCH <expression> -- <noun>`. Each becomes a
check: the reason why a value is refused, or None. No type admits a value that begins with `-` unless it is spelled
in the table, so that an option is never taken for a value.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ghost.errors import ConfigurationError
from ghost.patterns import lazy
from ghost.shell.judge.az.kql import fault_of_logs
from ghost.shell.judge.az.resource_graph import fault_of_graph
from ghost.shell.judge.network.exfiltration import (
    fault_of_accept,
    fault_of_address,
    fault_of_header,
    fault_of_name,
    fault_of_names,
)
from ghost.shell.judge.network.packet_filters import (
    fault_of_display_filter,
    fault_of_field,
    fault_of_packet_filter,
    fault_of_statistic,
)
from ghost.shell.judge.network.request_headers import fault_of_form, fault_of_user_agent
from ghost.shell.judge.network.request_urls import (
    embedded_addresses,
    fault_of_url,
    is_credential_service,
    is_metadata_name,
    parse_ipv4_leniently,
)
from ghost.shell.policy_tables import policy_table


@dataclass(frozen=True)
class Roots:
    """The directories under which captures are read and reports written; real paths decide."""

    paths: tuple[Path, ...]

    @cached_property
    def real(self) -> tuple[str, ...]:
        return tuple(os.path.realpath(path) for path in self.paths)

    def hold(self, path: str) -> bool:
        """Whether the real path lies under a root. A missing file is judged by its path."""
        real = real_path(path)
        return real is not None and any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.real)


def real_path(path: str) -> str | None:
    """The path with symbolic links resolved; None for a text that cannot be a path. `~` is not expanded."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return None


Check = Callable[[str, Roots], str | None]

_INT = lazy(r"0|[1-9][0-9]{0,8}")
_NUMBER = lazy(r"(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,6})?|\.[0-9]{1,6}")
_HOST_NAME = lazy(r"(?=.{1,254}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)
_MULTICAST_NAME = lazy(
    r"ip6-(?:allnodes|allrouters|allhosts|localnet|mcastprefix)|broadcasthost|broadcast"
    r"|(?:.+\.)?mcast\.net\.?",
    re.ASCII | re.IGNORECASE,
)
"""Names that hosts files and the root of multicast give to groups: /etc/hosts of Debian, Red Hat and macOS."""
_BROADCAST = ipaddress.IPv4Address(0xFFFF_FFFF)
_MANY_HOSTS = "addresses many hosts at once; name one"
_HANDS_OUT_CREDENTIALS = "is a cloud's metadata service, which hands out credentials; name another host"
_DNS_NAME = lazy(r"\.|(?=.{1,254}$)(?:[A-Za-z0-9_*]|(?<!^)-|\.(?!\.))+", re.ASCII)
_INTERFACE = lazy(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,14}", re.ASCII)
_ZONE = lazy(r"[A-Za-z0-9_.-]{1,15}", re.ASCII)
_CAPTURE = lazy(r".*\.(?:pcap|pcapng|cap)(?:\.gz)?", re.IGNORECASE)
_CERTIFICATE = lazy(r"(?!.*(?:key|priv)[^/]*$)(?:.*/)?[^/]+\.(?:crt|cer|pem)", re.IGNORECASE)
_KUBERNETES_NAME = lazy(r"[a-z0-9][a-z0-9.:-]{0,252}")
_API_GROUP = lazy(
    r"v[0-9][a-z0-9]{0,9}\.?|(?:v[0-9][a-z0-9]{0,9}\.)?(?:apps|batch|policy|autoscaling"
    r"|(?:[a-z0-9-]+\.){0,3}(?:k8s|istio|cilium|metallb|cert-manager)\.io|crd\.projectcalico\.org|acn\.azure\.com)"
)
_HEADER = lazy(r"(?P<name>[A-Za-z0-9-]+)(?::\x20?(?P<value>[\x20-\x7e]*)|;)")
_TILDE = "begins with '~', which nothing expands; write the whole path"
_VARIABLE = lazy(r"%\{(?P<name>[^{}]*)\}|%%|(?P<stray>%)")


def parse_type(text: str) -> Check:
    """Turn a table's type into its check; ConfigurationError for an unknown one."""
    alternatives = [_parse_one(part.strip()) for part in text.split(" | ")]
    if len(alternatives) == 1:
        return alternatives[0]

    def any_of(value: str, roots: Roots) -> str | None:
        reasons = []
        for check in alternatives:
            reason = check(value, roots)
            if reason is None:
                return None
            reasons.append(reason)
        return reasons[0] if len(set(reasons)) == 1 else ", and it ".join(dict.fromkeys(reasons))

    return any_of


def _parse_one(text: str) -> Check:
    name, _, parameters = text.partition(" ")
    maker = _MAKERS.get(name)
    if maker is None:
        raise ConfigurationError(f"A policy table names the unknown type {name!r}; known: {', '.join(_MAKERS)}.")
    return maker(parameters.strip())


def _bounded(pattern: re.Pattern[str], noun: str) -> Callable[[str], Check]:
    def make(parameters: str) -> Check:
        low, dots, high = parameters.partition("..")
        if not dots:
            raise ConfigurationError(f"A policy table's number needs bounds, as in '1..100', not {parameters!r}.")
        lowest, highest = float(low), float(high)

        def check(value: str, _: Roots) -> str | None:
            if pattern.fullmatch(value) and lowest <= float(value) <= highest:
                return None
            return f"is not a valid {noun} from {low} to {high}"

        return check

    return make


def _port_range(parameters: str) -> Check:
    """`PORT_RANGE 64`: FIRST-LAST of at most so many ports."""
    most = int(parameters)

    def check(value: str, _: Roots) -> str | None:
        first, dash, last = value.partition("-")
        if not dash or not _INT.fullmatch(first) or not _INT.fullmatch(last):
            return "is not a range of ports such as 8000-8005"
        if not 0 < int(first) <= int(last) < 65_536:
            return "is not a range of ports from 1 to 65535"
        return f"names more than {most} ports, which is a scan" if int(last) - int(first) >= most else None

    return check


def _word(parameters: str) -> Check:
    allowed = frozenset(parameters.split())
    listed = " ".join(sorted(allowed)) if len(allowed) <= 12 else f"{len(allowed)} listed words"
    return lambda value, _: None if value in allowed else f"is not one of: {listed}"


def _match(parameters: str) -> Check:
    """`MATCH <regular expression> -- <what it is>`."""
    expression, _, noun = parameters.partition(" -- ")
    pattern = lazy(expression, re.ASCII)
    reason = f"is not a valid {noun}" if noun else "does not have a form known to be harmless"
    return lambda value, _: None if pattern.fullmatch(value) else reason


def _named(parameters: str) -> Check:
    """`NAMED <regular expression> -- <what it is>`: it is, or holds, the name of a host that is resolved or sent."""
    check_form = _match(parameters)
    return lambda value, roots: check_form(value, roots) or fault_of_name(value)


def _sent(parameters: str) -> Check:
    """`SENT <regular expression> -- <what it is>`: a text of which a server is told."""
    check_form = _match(parameters)
    return lambda value, roots: check_form(value, roots) or fault_of_header(value)


def _user_agent(_: str) -> Check:
    return lambda value, _: fault_of_user_agent(value) or fault_of_header(value)


def _names(_: str) -> Check:
    """Names that are resolved one after the other."""
    return lambda value, _: fault_of_names(value.split(" "))


def _tokens(parameters: str) -> Check:
    """Words inside one value, as in `'( dport = :443 )'`: each must match. The name of a host is resolved."""
    pattern = lazy(parameters, re.ASCII)

    def check(value: str, _: Roots) -> str | None:
        tokens = value.split(" ")
        stray = next((token for token in tokens if token and not pattern.fullmatch(token)), None)
        if stray:
            return f"holds {stray!r}, which is not part of a filter"
        return next(filter(None, map(fault_of_name, tokens)), None) if value else "is empty"

    return check


def _text(_: str) -> Check:
    """Any printable text that neither names a file (`@`) nor looks like an option."""

    def check(value: str, _: Roots) -> str | None:
        return "is empty" if not value else "begins with '@' or '-'" if value.startswith(("@", "-")) else None

    return check


def fault_of_host(value: str) -> str | None:
    """A host name or one unicast address, in any spelling, that is no cloud's metadata service."""
    address = parse_ipv4_leniently(value.removesuffix(".")) or _address(value)
    if address is not None:
        if any(form.is_multicast or form == _BROADCAST for form in embedded_addresses(address)):
            return _MANY_HOSTS
        return _HANDS_OUT_CREDENTIALS if is_credential_service(address) else None
    if _MULTICAST_NAME.fullmatch(value):
        return _MANY_HOSTS
    if is_metadata_name(value):
        return _HANDS_OUT_CREDENTIALS
    return fault_of_name(value) if _HOST_NAME.fullmatch(value) else "is not a host name or address"


def _host_and_port(separator: str) -> Check:
    """`HOST_AND_PORT /`: `web-01/33434`, as tracepath takes them. Before a colon an IPv6 address is in brackets."""

    def check(value: str, _: Roots) -> str | None:
        host, between, port = value.rpartition(separator)
        if not between or not _INT.fullmatch(port) or not 0 < int(port) < 65536:
            return f"is not HOST{separator}PORT"
        if separator == ":" and ":" in host:
            if not (host.startswith("[") and host.endswith("]")):
                return "is not HOST:PORT; write an IPv6 address in brackets"
            host = host[1:-1]
        return fault_of_host(host)

    return check


def _address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    bare, percent, zone = value.partition("%")
    if percent and not _ZONE.fullmatch(zone):
        return None
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None


def _plain_address(_: str) -> Check:
    def check(value: str, _: Roots) -> str | None:
        address = _address(value)
        return "is not an IP address" if address is None else fault_of_address(address)

    return check


def _prefix(_: str) -> Check:
    def check(value: str, _: Roots) -> str | None:
        try:
            ipaddress.ip_network(value, strict=False)
        except ValueError:
            return "is not a network prefix such as 10.0.0.0/16"
        return None

    return check


def _interface(parameters: str) -> Check:
    """An interface's name, but no word of the given form: `ip link show set` is a slip for `ip link set`."""
    taken = lazy(parameters, re.ASCII)

    def check(value: str, _: Roots) -> str | None:
        if taken.fullmatch(value):
            return "is a word of the program, and is not taken for an interface; write dev before it if it is one"
        return None if _INTERFACE.fullmatch(value) else "is not an interface name"

    return check


def _dns_name(parameters: str) -> Check:
    """A domain name, underscore and wildcard labels included, but no word of the given form."""
    taken = lazy(parameters, re.ASCII | re.IGNORECASE)

    def check(value: str, _: Roots) -> str | None:
        if taken.fullmatch(value):
            return "asks for a whole zone or is not a query type in the table"
        return fault_of_name(value) if _DNS_NAME.fullmatch(value) else "is not a domain name"

    return check


def _server(_: str) -> Check:
    def check(value: str, _: Roots) -> str | None:
        return fault_of_host(value[1:]) if value.startswith("@") else "is not @server"

    return check


def _capture(_: str) -> Check:
    def check(value: str, roots: Roots) -> str | None:
        if value.startswith("~"):
            return _TILDE
        if value.startswith("-") or not _CAPTURE.fullmatch(value):
            return "is not a capture file (.pcap, .pcapng or .cap, also .gz)"
        if not roots.hold(value):
            return _outside(value, "captures are read", roots)
        real = real_path(value) or ""
        if not _CAPTURE.fullmatch(real):
            return f"is a link to {real}, which is not a capture file"
        if os.path.exists(real) and not os.path.isfile(real):  # noqa: PTH110, PTH113 - str paths, judged above
            return "is not a regular file"
        return None

    return check


def _fault_of_certificate(value: str, roots: Roots) -> str | None:
    """A file that by its place and its name holds a public certificate."""
    if value.startswith("~"):
        return _TILDE
    real = real_path(value) or ""
    if value.startswith("-") or not (_CERTIFICATE.fullmatch(value) and _CERTIFICATE.fullmatch(real)):
        return "is not a certificate by its name (.crt, .cer or .pem, without 'key' or 'priv' in it)"
    if not (real.startswith(("/etc/ssl/certs/", "/usr/share/ca-certificates/")) or roots.hold(value)):
        return _outside(value, "certificates are read", roots)
    return "is not a regular file" if os.path.exists(real) and not os.path.isfile(real) else None  # noqa: PTH110, PTH113


def _directory(_: str) -> Check:
    def check(value: str, roots: Roots) -> str | None:
        if value.startswith("~"):
            return _TILDE
        if not value or value.startswith("-"):
            return "is not a directory"
        if not roots.hold(value):
            return _outside(value, "reports are written", roots)
        real = real_path(value) or ""
        if os.path.lexists(real) and not os.path.isdir(real):  # noqa: PTH112 - a str path, judged above
            return "is not a directory"
        above = (str(path) for path in (Path(real), *Path(real).parents))
        if any(_holds_audit(path) for path in above if roots.hold(path)):
            return "is where the shell keeps its audit, or lies below it; name another directory"
        return None

    return check


def _local_file(parameters: str) -> Check:
    """`LOCAL_FILE`: configuration of the network, or what Ghost wrote into this workspace; both by their real path.

    `LOCAL_FILE with secrets`: also configuration in which keys may stand. Redaction knows them by the name before them,
    so only a program that prints whole files may read those.
    """
    kinds = ["configuration", *(["with_secrets"] if parameters else [])]

    def check(value: str, roots: Roots) -> str | None:
        if value.startswith("~"):
            return _TILDE
        if any(character in value for character in "*?["):
            return "is taken as written, since nothing expands '*'; name the files, or use grep -r WORD DIRECTORY"
        real = real_path(value)
        if not value or value.startswith("-") or real is None:
            return "is not the path of a file"
        if real.startswith("/proc/sys/") and os.path.isdir(real):  # noqa: PTH112 - a str path; two files below are keys
            return "is a directory of settings; name a file, or use sysctl -a"
        table = policy_table("local_files.toml")
        if any(lazy(table[kind]).fullmatch(real) for kind in kinds) or _is_own_file(real, roots):
            return None
        if lazy(table["with_secrets"]).fullmatch(real):
            return f"may hold keys, which only whole files show beside their names; use cat {value}"
        place = "lies" if real == value else f"is really {real}, which lies"
        where = "in" if roots.hold(value) else "OUTSIDE"
        return f"{place} {where} the workspace's own directories, and is no network configuration nor a file of Ghost's"

    return check


def _is_own_file(real: str, roots: Roots) -> bool:
    """Whether Ghost wrote the file: its audit, reports and summaries, in a directory that has an audit of the shell."""
    own = lazy(policy_table("local_files.toml")["own"])
    inside = (root for root in roots.real if real.startswith(root.rstrip("/") + "/"))
    return any(own.fullmatch(real[len(root) + 1 :]) and _holds_audit(f"{root}/audit") for root in inside)


def _holds_audit(directory: str) -> bool:
    """Whether the directory holds an audit of the shell, which a report could overwrite."""
    try:
        with os.scandir(directory) as entries:
            return any(entry.name.startswith("shell_audit_") for entry in entries)
    except OSError:
        return False


def _outside(value: str, what: str, roots: Roots) -> str:
    return f"is really {real_path(value)}, outside the directories where {what}: {', '.join(roots.real)}"


def _by(fault_of: Callable[[str], str | None]) -> Callable[[str], Check]:
    """A type without parameters."""
    return lambda _: lambda value, _: fault_of(value)


def _packet_filter(parameters: str) -> Check:
    """`PACKET_FILTER tcp=20 udp=8`: how many bytes at the start of each layer are header."""
    headers = {layer: int(length) for layer, _, length in (item.partition("=") for item in parameters.split())}
    return lambda value, _: fault_of_packet_filter(headers, value)


def _kinds(parameters: str) -> Check:
    """kubectl's TYPE[,TYPE] or TYPE/NAME, each a listed kind, also with the version and group of its API."""
    allowed = frozenset(parameters.split())

    def check(value: str, _: Roots) -> str | None:
        kinds, slash, name = value.partition("/")
        if slash and not _KUBERNETES_NAME.fullmatch(name):
            return "is not TYPE/NAME"
        for kind in kinds.split(","):
            bare, dot, group = kind.partition(".")
            if bare not in allowed or (dot and not _API_GROUP.fullmatch(group)):
                return f"names the kind {kind[:80]!r}, which is not in the table of those whose content may be shown"
        return None

    return check


def _header(parameters: str) -> Check:
    allowed = frozenset(parameters.lower().split())

    def check(value: str, _: Roots) -> str | None:
        match = _HEADER.fullmatch(value)
        if match is None:
            return "is not a header of the form 'Name: value'"
        name = match["name"].lower()
        if name == "host" and (fault := fault_of_url(f"http://{(match['value'] or '').strip()}/")):
            return f"names the host {(match['value'] or '')[:80]!r}, which as part of a URL {fault}"
        if name not in allowed:
            return f"sets the header {match['name']}, which is not listed"
        sent = match["value"] or ""
        if not sent:
            return None
        return (fault_of_accept(sent) if name == "accept" else fault_of_form(name, sent)) or fault_of_header(sent)

    return check


def _template(parameters: str) -> Check:
    """curl's --write-out: text and listed variables, nothing else after a percent sign."""
    allowed = frozenset(parameters.split())

    def check(value: str, _: Roots) -> str | None:
        if value.startswith(("@", "-")):
            return "reads its format from a file or standard input"
        for match in _VARIABLE.finditer(value):
            if match["stray"]:
                return f"holds {value[match.start() : match.start() + 12]!r}, which is not a listed %{{variable}}"
            if match["name"] is not None and match["name"] not in allowed:
                return f"asks for %{{{match['name']}}}, which is not a listed variable"
        return None

    return check


_MAKERS: Mapping[str, Callable[[str], Check]] = MappingProxyType(
    {
        "INT": _bounded(_INT, "whole number"),
        "PORT_RANGE": _port_range,
        "NUMBER": _bounded(_NUMBER, "number"),
        "WORD": _word,
        "MATCH": _match,
        "NAMED": _named,
        "NAMES": _names,
        "SENT": _sent,
        "USER_AGENT": _user_agent,
        "TOKENS": _tokens,
        "TEXT": _text,
        "HOST": _by(fault_of_host),
        "HOST_AND_PORT": _host_and_port,
        "ADDRESS": _plain_address,
        "PREFIX": _prefix,
        "INTERFACE": _interface,
        "DNS_NAME": _dns_name,
        "SERVER": _server,
        "CAPTURE": _capture,
        "CERTIFICATE": lambda _: _fault_of_certificate,
        "DIRECTORY": _directory,
        "LOCAL_FILE": _local_file,
        "URL": _by(fault_of_url),
        "FIELD": _by(fault_of_field),
        "DISPLAY_FILTER": _by(fault_of_display_filter),
        "STATISTIC": _by(fault_of_statistic),
        "PACKET_FILTER": _packet_filter,
        "KQL": _by(fault_of_logs),
        "KQL_GRAPH": _by(fault_of_graph),
        "KINDS": _kinds,
        "HEADER": _header,
        "TEMPLATE": _template,
    }
)


DEFAULT_ROOTS = (Path(), Path("captures"), Path("/tmp/captures"))  # noqa: S108 - the specified place of captures
