"""Scenes of name resolution: a fault that much else comes before, and what looks like one and is none."""

from __future__ import annotations

from collections.abc import Callable

from . import messages
from .faults.usual import other_port
from .network import Host, Packet
from .office import WORDS, Exchange, Office, chatter, talk
from .scene import Scenes

LOOKUPS = Scenes()
_HERE = ("client",)
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_CLUSTER = ("apps.svc.cluster.local", "svc.cluster.local", "cluster.local")

Rule = Callable[[bytes], tuple[float, bytes] | None]


def _missing(asked: bytes) -> tuple[float, bytes]:
    return 0.001, messages.reply(asked, code="NXDOMAIN")


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


def _second_resolver(office: Office, rule: Rule) -> Host:
    """Another DNS server, which the client can reach."""
    host = office.new_host()
    office.new_path(office.client, host)
    _serve(office, host, rule)
    return host


def _serve(office: Office, host: Host, rule: Rule) -> None:
    def take(packet: Packet) -> None:
        said = rule(packet.body[8:])
        if said is not None:
            wait, reply = said
            port = int.from_bytes(packet.body[:2], "big")
            back = messages.datagram(host.address, 53, packet.source, port, reply)
            office.world.later(wait, lambda: host.send(back))

    host.datagrams[53] = take


def _ask(office: Office, server: Host, name: str, begin: float, *, repeats: int = 0, kind: str = "A") -> None:
    """A query of the client to another server than the office's own."""
    port = office.client.free_port()
    asked = messages.query(name, office.dice.randrange(1, 65536), kind)
    packet = messages.datagram(office.client.address, port, server.address, 53, asked)
    office.client.datagrams[port] = lambda _: None
    for n in range(repeats + 1):
        office.world.later(begin + 2.0 * n, lambda: office.client.send(packet))


def _searches(office: Office, number: int) -> None:
    """Names that are found behind the suffixes of a cluster's search list."""
    for suffix in _CLUSTER:
        office.lookups[suffix] = _missing
    for n in range(number):
        target = f"api{n}.partner.example"
        for k, suffix in enumerate(_CLUSTER):
            office.lookup(f"{target}.{suffix}", 0.5 + 0.15 * n + 0.08 * k)
        office.lookup(target, 0.5 + 0.15 * n + 0.3)


def _random(office: Office, size: int, letters: str = _BASE32) -> str:
    return "".join(office.dice.choices(letters, k=size))


# ------------------------------------------------------------------------------------- behind many of their kind


@LOOKUPS.add("dns_nxdomain", "dns", points=_HERE)
def lost_name_behind_a_search_list(office: Office) -> None:
    _ordinary(office)
    _searches(office, 40)
    missing = office.name("db-primry", "prod")
    office.lookups[missing] = _missing
    for n in range(6):
        office.lookup(missing, 8.0 + n)


@LOOKUPS.add("dns_nxdomain", "dns", points=_HERE)
def lost_name_behind_random_names_of_one_domain(office: Office) -> None:
    """Each of the random names is asked for in the domain of somebody under attack, or by a scanner."""
    _ordinary(office)
    missing = office.name("db-primry", "prod")
    office.lookups["victim.example"] = office.lookups[missing] = _missing
    for n in range(600):
        office.lookup(f"{_random(office, 6)}.victim.example", 0.5 + 0.01 * n)
    for n in range(6):
        office.lookup(missing, 8.0 + n)


@LOOKUPS.add("dns_suspicious", "client", points=_HERE)
def algorithm_behind_a_search_list(office: Office) -> None:
    _ordinary(office)
    _searches(office, 40)
    office.lookups["biz"] = _missing
    for n in range(40):
        office.lookup(f"{_random(office, 14, 'bcdfghjklmnpqrstvwxz')}.biz", 8.0 + 0.1 * n)


@LOOKUPS.add("dns_suspicious", "client", points=_HERE)
def tunnel_behind_ordinary_names(office: Office) -> None:
    _ordinary(office)
    for n in range(30):
        for k in range(3):
            office.lookup(office.name(f"app{n}", "corp"), 0.5 + 0.1 * n + 2 * k)
    office.lookups["t.stats-cdn.net"] = lambda asked: (0.03, messages.reply(asked, text="ok"))
    for n in range(100):
        name = f"{_random(office, 50)}.{_random(office, 45)}.t.stats-cdn.net"
        office.lookup(name, 1.0 + 0.1 * n, kind=office.dice.choice(["TXT", "A"]))


@LOOKUPS.add("dns_timeout", "dns", points=_HERE, seconds=40.0)
def dead_resolver_behind_lost_queries(office: Office) -> None:
    """The first resolver loses a query now and then; the second one is dead."""
    _ordinary(office)
    lost: set[str] = set()

    def at_second_try(asked: bytes) -> tuple[float, bytes] | None:
        name = bytes(asked[12:]).hex()
        if name not in lost:
            lost.add(name)
            return None
        return 0.003, messages.reply(asked, addresses=[office.server.address])

    office.lookups["flaky.example"] = at_second_try
    for n in range(60):
        office.lookup(f"h{n}.flaky.example", 0.5 + 0.2 * n)
        office.lookup(f"h{n}.flaky.example", 5.5 + 0.2 * n)
    dead = _second_resolver(office, lambda asked: None)
    for n in range(12):
        _ask(office, dead, office.name(f"k{n}"), 20.0 + 0.5 * n, repeats=1)


@LOOKUPS.add("dns_servfail", "dns", points=_HERE)
def failing_server_behind_another(office: Office) -> None:
    """Both fail: a partner's domain at the one, and everything at the other."""
    _ordinary(office)
    office.lookups["partner.example"] = lambda asked: (0.002, messages.reply(asked, code="SERVFAIL"))
    for n in range(80):
        office.lookup(f"h{n}.partner.example", 0.5 + 0.05 * n)
    other = _second_resolver(office, lambda asked: (0.002, messages.reply(asked, code="REFUSED")))
    for n in range(20):
        _ask(office, other, office.name(f"k{n}"), 8.0 + 0.2 * n)


@LOOKUPS.add("dns_slow", "dns", points=_HERE)
def slow_server_behind_a_slower_one(office: Office) -> None:
    """Hundreds of late answers are as many, though few of them are shown."""
    office.background(server_port=other_port(office), lookups=False)
    slower, slow = (
        _second_resolver(
            office, lambda asked, at_least=at_least: (  # type: ignore[misc]
                office.dice.uniform(at_least, at_least + 0.2),
                messages.reply(asked, addresses=[office.server.address]),
            ),
        )
        for at_least in (2.0, 0.6)
    )  # fmt: skip
    for n in range(200):
        _ask(office, slower, office.name(f"s{n}"), 0.5 + 0.05 * n)
        _ask(office, slow, office.name(f"t{n}"), 0.5 + 0.06 * n)


# --------------------------------------------------------------------------------------------- the capture's edges


@LOOKUPS.add("none", "none", points=_HERE)
def asked_when_the_capture_ends(office: Office) -> None:
    _ordinary(office)
    for n in range(6):
        office.world.later(19.97 + 0.004 * n, lambda n=n: office.lookup(office.name(f"last{n}"), 0.0))  # type: ignore[misc]
    office.lookups["*"] = lambda asked: (0.05, messages.reply(asked, addresses=[office.server.address]))


@LOOKUPS.add("none", "none", points=_HERE)
def slow_server_when_the_capture_ends(office: Office) -> None:
    """A recursive server takes a second and a half for names it has to look for; the last are not found yet."""
    _ordinary(office)
    recursive = _second_resolver(
        office, lambda asked: (
            1.6 if b"far" in asked else 0.003, messages.reply(asked, addresses=[office.server.address]),
        ),
    )  # fmt: skip
    for n in range(60):
        _ask(office, recursive, office.name(f"far{n}" if n % 30 == 7 else f"near{n}"), 0.5 + 0.3 * n)
    for n in range(3):
        _ask(office, recursive, office.name(f"far-last{n}"), 18.6 + 0.01 * n)


@LOOKUPS.add("dns_timeout", "dns", points=_HERE)
def dead_resolver_shortly_before_the_end(office: Office) -> None:
    office.background(server_port=other_port(office), lookups=False)
    office.lookups["*"] = lambda asked: None
    for n in range(4):
        office.lookup(office.name(f"late{n}"), 17.0 + 0.1 * n)
        office.ping(office.client, office.others[0], 18.5 + 0.3 * n, 10 + n)


@LOOKUPS.add("dns_timeout", "dns", points=_HERE)
def resolver_dies_before_the_end(office: Office) -> None:
    """It answered until three seconds before the capture's end."""
    office.background(server_port=other_port(office), lookups=False)
    office.lookups["late.example"] = lambda asked: None
    for n in range(20):
        office.lookup(office.name(f"early{n}"), 1.0 + 0.5 * n)
        office.lookup(f"n{n}.late.example", 17.0 + 0.05 * n)
    office.ping(office.client, office.others[0], 19.5, 10)


@LOOKUPS.add("dns_timeout", "dns", points=_HERE)
def capture_stopped_when_the_program_gave_up(office: Office) -> None:
    """Two attempts of half a second each, the last packets that there are."""
    office.background(server_port=other_port(office), lookups=False)
    office.lookups["gone.example"] = lambda asked: None
    for n in range(8):
        office.lookup(office.name(f"near{n}"), 1.0 + n)
    for n in range(3):
        office.lookup(f"h{n}.gone.example", 19.3)
        office.lookup(f"h{n}.gone.example", 19.9)


@LOOKUPS.add("none", "none", points=_HERE)
def two_programs_ask_when_the_capture_ends(office: Office) -> None:
    _ordinary(office)
    office.lookups["last.example"] = lambda asked: (0.3, messages.reply(asked, addresses=[office.server.address]))
    for n in range(4):
        for k in range(2):
            office.lookup(f"h{n}.last.example", 19.8 + 0.02 * n + 0.005 * k)


# ------------------------------------------------------------------------------------------------------ one way


@LOOKUPS.add("none", "none", points=_HERE)
def only_what_the_client_sends(office: Office) -> None:
    """A mirror port that mirrors one direction."""
    _ordinary(office)
    for path in office.world.paths.values():
        path.captured = (path.a == office.client.address, path.b == office.client.address)
    for n in range(4):
        talk(office.client, office.server, office.port, chatter(office.dice, 5), begin=1.0 + n)
        office.lookup(office.name(f"web{n}"), 1.0 + n)


@LOOKUPS.add("asymmetric", "network", points=_HERE)
def server_heard_one_way(office: Office) -> None:
    """The answers of a host that serves names and TCP come back another way."""
    _ordinary(office)
    host = _second_resolver(office, lambda asked: (0.004, messages.reply(asked, addresses=[office.server.address])))
    office.world.paths[office.client.address, host.address].captured = (True, False)
    for n in range(12):
        _ask(office, host, office.name(f"k{n}"), 1.0 + n)
    for n in range(4):
        talk(office.client, host, 853, chatter(office.dice, 4), begin=1.0 + n)


def one_way_to_one_host_and_a_dead_resolver(office: Office) -> None:
    """The answers of one host take another way; all others are heard, but for the resolver."""
    office.background(server_port=other_port(office), lookups=False)
    host = office.new_host()
    office.new_path(office.client, host).captured = (True, False)
    for n in range(4):
        talk(office.client, host, 853, chatter(office.dice, 4), begin=1.0 + n)
    office.lookups["*"] = lambda asked: None
    for n in range(5):
        office.lookup(office.name(f"k{n}"), 1.0 + n, repeats=1)


@LOOKUPS.add("asymmetric", "network", points=_HERE)
def only_answers_of_a_name_server(office: Office) -> None:
    _ordinary(office)
    host = _second_resolver(office, lambda asked: (0.004, messages.reply(asked, addresses=[office.server.address])))
    office.world.paths[office.client.address, host.address].captured = (False, True)
    for n in range(30):
        _ask(office, host, office.name(f"k{n}"), 1.0 + 0.3 * n)


# ------------------------------------------------------------------------------------------ data in names, or not


@LOOKUPS.add("dns_suspicious", "client", points=_HERE)
def hashes_in_names(office: Office) -> None:
    """A service that is asked about files resembles a tunnel; that some of them are unknown is its answer."""
    _ordinary(office)
    zone = office.dice.choice(["telemetry.net", "hashes.example"])
    office.lookups[zone] = lambda asked: (
        (0.02, messages.reply(asked, addresses=["127.0.0.2"])) if asked[20] % 2 else _missing(asked)
    )
    for n in range(60):
        office.lookup(f"{_random(office, 26)}.{_random(office, 26)}.{zone}", 0.5 + 0.2 * n)


@LOOKUPS.add("none", "none", points=_HERE)
def mail_server_asks_lists_of_addresses(office: Office) -> None:
    _ordinary(office)
    lists = ["zen.spamhaus.org", "bl.ownlist.example", "dnsbl.corp.example"]
    for zone in lists:
        office.lookups[zone] = _missing
    for n in range(40):
        four = ".".join(str(office.dice.randrange(1, 255)) for _ in range(4))
        six = ".".join(office.dice.choice("0123456789abcdef") for _ in range(32))
        for zone in lists:
            office.lookup(f"{six if n % 4 == 0 else four}.{zone}", 0.5 + 0.2 * n)


@LOOKUPS.add("dns_nxdomain", "dns", points=_HERE)
def lost_name_of_a_mail_server(office: Office) -> None:
    mail_server_asks_lists_of_addresses(office)
    missing = office.name("4", "smtp-relay", "prod")
    office.lookups[missing] = _missing
    for n in range(5):
        office.lookup(missing, 9.0 + n)


@LOOKUPS.add("none", "none", points=_HERE)
def many_names_searched_at_once(office: Office) -> None:
    """A program that starts asks for forty names together, each with every suffix in turn."""
    _ordinary(office)
    for suffix in _CLUSTER:
        office.lookups[suffix] = _missing
    for n in range(40):
        for k, suffix in enumerate(_CLUSTER):
            office.lookup(f"svc{n}.partner.example.{suffix}", 1.0 + 0.001 * n + 0.2 * k)
        office.lookup(f"svc{n}.partner.example", 1.6 + 0.001 * n)


@LOOKUPS.add("none", "none", points=_HERE)
def long_names_of_a_cluster(office: Office) -> None:
    """Services are named with many words, and each is asked for by its whole name."""
    _ordinary(office)
    roles = ["gateway", "controller", "reconciliation", "notification", "authorisation"]
    for n in range(60):
        service = (
            f"{office.dice.choice(WORDS)}-{office.dice.choice(roles)}-{office.dice.choice(WORDS)}-service-v{n % 4}"
        )
        name = f"{service}.{office.dice.choice(WORDS)}-production.svc.cluster.local"
        for _ in range(2):
            office.lookup(name, office.dice.uniform(0.5, 15.0))


@LOOKUPS.add("none", "none", points=_HERE)
def long_names_of_a_cloud(office: Office) -> None:
    """Load balancers and endpoints of a cloud have long names with a short random part."""
    _ordinary(office)
    for n in range(60):
        digits = _random(office, 16, "0123456789abcdef")
        name = (
            f"internal-k8s-{office.dice.choice(WORDS)}-ingress-{digits}-{office.dice.randrange(10**9)}.eu-west-1.elb"
            ".amazonaws.com"
            if n % 2
            else f"{office.dice.choice(WORDS)}-sqlserver-{digits[:6]}-prod-weu-001.privatelink.database.windows.net"
        )
        office.lookup(name, office.dice.uniform(0.5, 15.0))


# ------------------------------------------------------------------------------------------- who waits for a name


def _pages(office: Office, think: float, lookup: float, asks: Host) -> None:
    """Each page takes `think` seconds, in which a host looks up a name for `lookup` seconds."""
    office.background(server_port=other_port(office), lookups=False)
    office.new_path(office.server, office.resolver)
    office.lookups["*"] = lambda asked: (lookup, messages.reply(asked, addresses=[office.others[0].address]))
    for n in range(6):
        page = Exchange(messages.get(office.name("www"), f"/{n}"), ((think, messages.answer(900)),))
        talk(office.client, office.server, 8080, [page], begin=0.5 + 2 * n)
        office.lookup(office.name(f"backend{n}"), 0.8 + 2 * n, source=asks)


@LOOKUPS.add("dns_slow", "dns", points=("between",), seconds=30.0)
def pages_wait_for_names(office: Office) -> None:
    _pages(office, 2.6, 2.0, office.server)


def slow_pages_of_a_server_with_slow_names(office: Office) -> None:
    """The lookup is slow as well, and the least of what a page takes."""
    _pages(office, 5.0, 1.2, office.server)


def slow_pages_and_slow_names_of_others(office: Office) -> None:
    """The client's lookups are slow, not the server's."""
    _pages(office, 2.6, 2.0, office.client)
