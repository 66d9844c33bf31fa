"""Notes that answer nothing: the days on which an engineer looked, handed over, patched, and found no cause.

They take names, addresses, ports and words from the written notes, so that a search that only knows names finds them
too. None tells a cause or a cure. The same seed gives the same notes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_NAME = re.compile(r"\b[a-z][a-z0-9]*(?:-[a-z0-9]+)+\b")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b")
_PORT = re.compile(r"(?<=:)\d{2,5}\b|(?<=port )\d{2,5}\b")
_WORD = re.compile(r"\b[a-z]{6,14}\b")

PEOPLE = (
    *("Tamsin", "Farouk", "Ingrid", "Oksana", "Callum", "Ricardo", "Benoit", "Nadia", "Emil", "Babak", "Sergej"),
    *("Hamza", "Wanda", "Piotr", "Lotte", "Mei", "Iwona", "Aino", "Vasile", "Yevgenia", "Priya", "Kofi", "Soledad"),
)
PLACES = (
    *("Leeds", "Essen", "Torun", "Porto", "Linz", "Bath", "Oulu", "Cork", "Lisbon", "Turin", "Nantes", "Brno"),
    *("Leipzig", "Vilnius", "Malmö", "Gdansk", "Galway", "Oslo", "Sydney", "Rotterdam", "Ghent", "Kassel"),
)
SUBJECTS = (
    *(
        "security group rules",
        "route tables",
        "peering links",
        "resolver settings",
        "private endpoints",
        "health probes",
    ),
    *("translation ports", "tunnel lifetimes", "certificates", "firewall policies", "lease times", "proxy exceptions"),
    *(
        "health probes",
        "time servers",
        "cache limits",
        "database listeners",
        "storage access",
        "packet sizes",
        "session tables",
    ),
    *("circuit bandwidth", "cluster nodes", "message brokers", "trunk ports", "voice quality", "access points"),
)
SYMPTOMS = (
    *(
        "slow logins",
        "a timeout",
        "connection resets",
        "a refused connection",
        "lost packets",
        "names that do not resolve",
    ),
    *("intermittent 502 answers", "high latency", "a stalled upload", "a handshake failure", "a queue that grows"),
    *("an unreachable host", "dropped calls", "a hanging mount", "missing logs", "sessions cut in the evening"),
    *(
        "names that do not resolve",
        "a certificate warning",
        "a blocked port",
        "an address conflict",
        "a lagging replica",
    ),
)
OPENINGS = (
    "Looked at {name} together with {person} after a report of {symptom} from {place}.",
    "Quarterly review of {subject} on {name} and {other}.",
    "Hand-over to the day shift: {name} is under watch because of {symptom} last week.",
    "Patched {name} in the window of {day}, {other} follows on the next one.",
    "User in {place} complained of {symptom} towards {address}.",
    "Inventory: {name} has the address {address} and listens on {port}; owner is {person}.",
    "Alarm for {name} at {hour}, closed by itself after {minutes} minutes.",
    "Call with the vendor about {subject}; {person} and {person2} took part.",
    "Capacity plan for {name}: {subject} are at {percent} percent of what was bought.",
    "Drill in {place}: {person} played an outage of {name} with {symptom}.",
    "Change {change} renames {name}; {subject} are not touched.",
    "New monitor for {address}:{port} on behalf of {person}.",
    "Asked by {person} whether {symptom} at {place} has to do with {name}.",
    "Trained {person} on {subject}, with {name} as the example.",
    "Cleaned up documentation of {subject} for {place}.",
)
MIDDLES = (
    "Tested {address} on {port} five times, each test went through in {minutes} ms.",
    "Counters of {other} are at zero, graphs of the week are flat.",
    "{person2} could not reproduce it, neither from {place} nor from the hub.",
    "Compared {name} with {other}: no difference in {subject}.",
    "Export of {subject} is attached, nothing was changed.",
    "The capture at {address} shows nothing unusual in {minutes} minutes.",
    "Restarted nothing, moved nothing; {other} stays as it is.",
    "Thresholds for {symptom} remain as they were.",
    "{percent} of 100 probes from {place} were answered within a second, the rest a little later.",
    "Version of the agent on {other} is current.",
    "It may have been {symptom}, or {subject}, or nothing at all.",
    "Spoke of {subject} too, without a result.",
)
ENDINGS = (
    "Closed without a finding.",
    "To be looked at again when it returns.",
    "Next review in {month}.",
    "{person} will ask the owner of {other}.",
    "No cause known, ticket {change} stays open.",
    "No action needed.",
    "Sent the summary to {person2}.",
    "Waiting for an answer of the team in {place2}.",
    "Filed under {word}, {word2} and {word3}.",
    "Filed under {word} and {word2}; {person} keeps the list.",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "March", "April", "June", "August", "September", "November")


def distractors(notes: Sequence[str], count: int, seed: int) -> list[str]:
    """So many different notes."""
    chance, text = random.Random(seed), "\n".join(notes)
    names, addresses, ports, words = (sorted(set(pattern.findall(text))) for pattern in (_NAME, _ADDRESS, _PORT, _WORD))
    made: dict[str, None] = {}
    for _ in range(10 * count):
        if len(made) == count:
            return list(made)
        name, other = chance.sample(names, 2)
        person, person2 = chance.sample(PEOPLE, 2)
        place, place2 = chance.sample(PLACES, 2)
        word, word2, word3 = chance.sample(words, 3)
        parts = [chance.choice(OPENINGS), *chance.sample(MIDDLES, chance.randint(1, 3)), chance.choice(ENDINGS)]
        note = " ".join(parts).format(
            name=name,
            other=other,
            person=person,
            person2=person2,
            place=place,
            place2=place2,
            word=word,
            word2=word2,
            word3=word3,
            address=chance.choice(addresses),
            port=chance.choice(ports),
            subject=chance.choice(SUBJECTS),
            symptom=chance.choice(SYMPTOMS),
            day=chance.choice(DAYS),
            month=chance.choice(MONTHS),
            hour=f"{chance.randrange(24):02}:{chance.randrange(60):02}",
            minutes=chance.randint(2, 58),
            percent=chance.randint(12, 97),
            change=f"CHG-{chance.randint(30000, 39999)}",
        )
        made[note] = None
    raise ValueError(f"only {len(made)} different notes")
