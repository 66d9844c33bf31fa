"""What the tools inside a machine print: the guest as run-command shows it, and as the walk reads it."""

from __future__ import annotations

from ghost.lab.world import Listener, Machine

OPEN_FIREWALL = """*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
"""
NO_TABLES = '{"nftables": [{"metainfo": {"version": "1.0.9", "json_schema_version": 1}}]}'


def guest_texts(vm: Machine) -> dict[str, str]:
    """Return the text of each of `ghost.net`'s guest commands. A guest says nothing of routes that a world does not
    state.
    """
    texts = {
        "tcp": sockets_of(vm, "Tcp"),
        "udp": sockets_of(vm, "Udp"),
        "nft": vm.nft or NO_TABLES,
        "iptables": vm.iptables or OPEN_FIREWALL,
        "forwarding": "1" if vm.forwards else "0",
    }
    return {**texts, **({"routes": vm.routes} if vm.routes else {})}


def sockets_of(vm: Machine, protocol: str) -> str:
    """Return the rows of `ss -tlnpH` or `ss -ulnpH`."""
    rows = [_row(listener, 700 + number) for number, listener in enumerate(vm.listeners, 1)]
    return "\n".join(row for row, listener in zip(rows, vm.listeners, strict=True) if listener.protocol == protocol)


def _row(listener: Listener, process_id: int) -> str:
    state = "LISTEN 0      4096 " if listener.protocol == "Tcp" else "UNCONN 0      0    "
    six = ":" in listener.address
    address = f"[{listener.address}]" if six else listener.address
    peer = "[::]:*" if six else "0.0.0.0:*"
    process = f'users:(("{listener.process}",pid={process_id},fd=6))'
    return f"{state}{address}:{listener.port} {peer} {process}"
