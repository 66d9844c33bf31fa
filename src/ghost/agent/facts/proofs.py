"""Claims compared with the records that they cite: of statements, coverage, causes and the text of a conclusion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ghost.agent.audit_evidence import CAPTURE, Evidence, cited_ids, tag_of
from ghost.agent.facts.meant_traffic import against_the_walk, includes, not_passing, stopped
from ghost.agent.facts.recorded_facts import NONE, Demand, Fact, Words, argv_in, fact_shapes, facts_in, names_in
from ghost.agent.facts.second_walk import NOT_CONFIGURED, WalkedAgain, addresses_of, network_of_records, walked_again
from ghost.agent.session import MeantTraffic
from ghost.net import Network, ServiceTags, covers_address, is_address, kinds_seen_as, known_kinds
from ghost.text import map_text, one_line

UNCITED: Final = "cites no audit record"
MAX_TOLD: Final = 3
"""Of facts in one problem."""
UNCERTAIN: Final = re.compile(
    r"\b(?:not|no|never|neither|nor|none|was|were|been|if|would|could|might|may|unless|whether|until|when|should|than)\b"
    r"|n't\b",
    re.IGNORECASE,
)
"""A clause with one of these states no value of now."""
_CLAUSES: Final = re.compile(r"[.;:,()](?=\s|$)|\b(?:and|but|while|whereas|so|because)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\s(),]+")
DIRECTION: Final = "direction"
TITLE: Final = "finding_title"
WEAK: Final = {"syn_unanswered", "no_answer"}
"""Findings of a capture that tell only that no answer came: of a kind beyond the guest they tell nothing."""


@dataclass(frozen=True)
class Proof:
    """What the records say to a cause."""

    problems: tuple[str, ...] = ()
    checked: str = ""
    """How it was compared, for the report."""
    limit: str = ""
    """Why it is medium at most: it could not be walked, and what would be needed for it."""


def proofs_of(evidence: Evidence, session_id: str, meant: MeantTraffic | None = None) -> Proofs:
    """Return the checks of a session, which keep what they took from its records.

    `meant`: of a model's session the traffic of the symptom as code reads it, to whose walk its claims are held.
    """
    proofs: Proofs = evidence.derived.setdefault(f"proofs {meant}", Proofs(evidence, session_id, meant))
    return proofs


class Proofs:
    """The checks of one session's claims. Facts are taken from a record when it is first asked for."""

    def __init__(self, evidence: Evidence, session_id: str, meant: MeantTraffic | None = None) -> None:
        self._evidence = evidence
        self._session_id = session_id
        self._meant: MeantTraffic | None = None
        if meant is not None:
            flows = (
                replace(f, source=self._real(f.source), destination=self._real(f.destination)) for f in meant.flows
            )
            self._meant = replace(meant, flows=tuple(flows))
        self._facts: dict[str, tuple[Fact, ...]] = {}
        self._built: tuple[tuple[int, bool], Network] | None = None

    def facts(self, audit_ids: Iterable[str]) -> list[Fact]:
        return [fact for audit_id in audit_ids for fact in self._facts_of(audit_id)]

    def _facts_of(self, audit_id: str) -> tuple[Fact, ...]:
        if audit_id not in self._facts:
            text = self._printed(audit_id)
            self._facts[audit_id] = facts_in(self._evidence[audit_id], text) if text else ()
        return self._facts[audit_id]

    def _printed(self, audit_id: str) -> str | None:
        record = self._evidence.get(audit_id, {})
        if record.get("status") != "completed" or (tag_of(record).tier <= 2 and record.get("exit_code") != 0):
            return None
        return self._evidence.real_output(audit_id)

    # Texts and statements

    def text_problems(self, text: str) -> list[str]:
        """Return the audit ids in a text that are no records of this session."""
        return [
            f"{each} is not an audit record of this session"
            for each in cited_ids(text, self._session_id)
            if each not in self._evidence
        ]

    def statement_problems(self, statement: Mapping[str, Any]) -> list[str]:
        text, audit_ids = str(statement["text"]), list(statement.get("audit_ids") or [])
        facts = self.facts(audit_ids)
        found = [*(self._evidence.problems(audit_ids) if audit_ids else [UNCITED]), *self.text_problems(text)]
        for claim in statement.get("facts") or []:
            found += self._claim_problems(claim, facts, audit_ids)
        return self._hidden([*found, *_misworded(self._real(text), facts)])

    def _claim_problems(
        self, claim: Mapping[str, Any], facts: Sequence[Fact], audit_ids: Sequence[str]
    ) -> Iterator[str]:
        subject, name = str(claim["subject"]), str(claim["property"]).casefold().replace(" ", "_")
        about = [fact for fact in facts if fact.property == name and _is_about(fact, self._real(subject))]
        value = _plain(self._real(str(claim["value"])))
        if not about:
            yield f"{_listed(audit_ids)} shows no {name} of {subject}"
        elif value not in (_plain(fact.value) for fact in about):
            yield _says(about)

    def coverage_problems(self, row: Mapping[str, Any]) -> list[str]:
        """Return why records cannot clear a layer or blame it: they exist, ran, and one of them succeeded."""
        ids, note = list(row.get("audit_ids") or []), str(row.get("note") or "")
        if row["status"] == "not_verified":
            return self.text_problems(note)
        found = [*(self._evidence.problems(ids) if ids else [UNCITED]), *self.text_problems(note)]
        ended = {self._evidence[each].get("exit_code") for each in ids if each in self._evidence}
        if row["status"] == "cleared" and not found and 0 not in ended:
            found.append(f"{_listed(ids)} failed (exit {', '.join(map(str, ended))}): a failed read clears nothing")
        elif row["status"] == "cleared" and self._meant is not None and not self.is_masked:
            found += filter(None, [against_the_walk(self._meant, self.network, str(row["layer"]))])
        return self._hidden(found)

    def not_passing(self) -> list[str]:
        """Return why the traffic of a model's symptom is not shown to pass; a capture shows the wire alone."""
        if self._meant is None or self.is_masked:
            return []
        return self._hidden(not_passing(self._meant, self.network))

    def stopped(self) -> list[str]:
        """Return the walks of the traffic of a model's symptom that something stops."""
        if self._meant is None or self.is_masked:
            return []
        return self._hidden(stopped(self._meant, self.network))

    def clears_the_wire(self, audit_ids: Iterable[str]) -> bool:
        """Return whether a capture is among the records; for claims of code, what code says of them is enough."""
        return self._meant is None or any(tag_of(self._evidence[each]) == CAPTURE for each in audit_ids)

    # Causes

    def proof_of(self, cause: Mapping[str, Any]) -> Proof:
        """Return what the records say: a capture, the flow walked again, else the fact that the kind demands.

        A finding that several kinds are seen as tells apart none that configuration shows.
        """
        real = map_text(cause, self._real)
        found = self._proof_of(real)
        if not (found.problems or found.limit or self.is_masked or self._is_meant(real)):
            found = replace(found, limit="the symptom's own traffic as its flow, named without doubt")
        hide = self._evidence.hidden
        return Proof(tuple(self._hidden(found.problems)), hide(found.checked), hide(found.limit))

    def _is_meant(self, cause: Mapping[str, Any]) -> bool:
        meant = self._meant
        return meant is None or (meant.sure and includes(meant, self.network, cause.get("flow") or {}))

    def _proof_of(self, cause: Mapping[str, Any]) -> Proof:
        ids = [each for each in cause["audit_ids"] if self._printed(each) is not None]
        in_cloud = [each for each in ids if tag_of(self._evidence[each]).context == "[CLOUD]"]
        if not in_cloud:
            return Proof((f"{_listed(cause['audit_ids'])}: no [CLOUD] record that succeeded shows it",))
        if self._evidence.is_masked:
            return Proof(checked="not compared: private", limit="the values behind the placeholders of its records")
        layer, seen = known_kinds()[cause["kind"]].layer, self._seen(cause, in_cloud)
        shown = Proof(checked=f"the capture shows it: {seen[0]} ({seen[0].record})") if seen else None
        if shown and (layer in NOT_CONFIGURED or any(kinds_seen_as(each.value) == (cause["kind"],) for each in seen)):
            return shown
        if layer == "wire":
            seen_as = " or ".join(known_kinds()[cause["kind"]].seen_as.split())
            if titles := self._titled(cause, in_cloud):
                return Proof(checked=f"the capture says: {titles[0]}", limit="the kinds of its findings (--findings)")
            return Proof((f"{_listed(in_cloud)} does not show it: no capture with {seen_as} at the ends of its flow",))
        again = walked_again(self.network, cause)
        if again.outcome == "shown":
            proof, answered = self._rests(cause, again), self._answered(cause)
            if answered is None or proof.problems:
                return proof
            return replace(proof, limit=f"no capture that saw its flow answered ({answered} in {answered.record})")
        if again.outcome == "not_shown":
            return Proof((f"walked again from the records, {again.told}",))
        if shown:
            return replace(shown, limit=f"its flow walked again, since other faults are seen so too: {again.told}")
        wrong = self._undemanded(cause, in_cloud)
        if wrong:
            return Proof(tuple(wrong))
        checked = "the record shows it; its flow could not be walked"
        if fact_shapes().demanded[cause["kind"]].certain:
            return Proof(checked=checked)
        limit = f"its flow walked again{f': {again.told}' if again.told else ''}"
        return Proof(checked=checked, limit=limit)

    def facts_about(self, cause: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what the cited records tell of a cause's resource and rule, as a statement names facts."""
        about = (fact for fact in self.facts(cause["audit_ids"]) if _is_of(fact, str(cause["resource"])))
        ruled = (fact for fact in about if self._has_rule(fact, cause))
        return [{"subject": "/".join(f.subject), "property": f.property, "value": f.value} for f in ruled][:MAX_TOLD]

    @property
    def is_masked(self) -> bool:
        return self._evidence.is_masked

    @property
    def network(self) -> Network:
        """What the session has read, built anew where more was read."""
        read = len(self._evidence), self._evidence.earlier is not None
        if self._built is None or self._built[0] != read:
            self._built = read, network_of_records(self._evidence, self._evidence.real_output)
        return self._built[1]

    def _real(self, text: str) -> str:
        return self._evidence.restored(text)

    def _hidden(self, problems: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(map(self._evidence.hidden, problems)))

    def _rests(self, cause: Mapping[str, Any], again: WalkedAgain) -> Proof:
        """Return the proof of a fault that is there, if the cause cites what it rests on, or what said the same."""
        told, cited = ({self._said(each) for each in ids} for ids in (again.records, cause["audit_ids"]))
        if again.records and not told & cited:
            return Proof((f"it rests on {_listed(again.records)}: cite that",))
        return Proof(checked=f"walked again from the records; {again.told}")

    def _said(self, audit_id: str) -> tuple[str, str | None]:
        return " ".join(argv_in(self._evidence.get(audit_id, {}))), self._printed(audit_id)

    def _undemanded(self, cause: Mapping[str, Any], ids: Sequence[str]) -> list[str]:
        """Return why the cited records do not show the fact that this kind of cause demands."""
        demand = fact_shapes().demanded.get(cause["kind"])
        if demand is None:
            return [f"{_listed(ids)} does not show it, and its flow could not be walked: cite the reads of the path"]
        about = [fact for fact in self.facts(ids) if _is_of(fact, str(cause["resource"]))]
        ruled = [fact for fact in about if self._has_rule(fact, cause)]
        if demand.property == "next_hop":
            ruled = [fact for fact in ruled if self._leads(fact, cause)]
        told = [fact for fact in (about if demand.absent else ruled) if fact.property == demand.property]
        if demand.absent:
            there = [fact for fact in told if fact.value != NONE and self._has_rule(fact, cause)]
            if told and (not cause.get("rule") or not there):
                return []
        elif any(_meets(demand, fact) for fact in ruled):
            return []
        if told:
            return [_says(told)]
        return [f"{_listed(ids)} does not show it: no {demand.property.replace('_', ' ')} of {_place(cause)}"]

    def _seen(self, cause: Mapping[str, Any], ids: Sequence[str]) -> list[Fact]:
        """Return the findings of cited captures that this kind of cause is seen as, about the flow's ends."""
        kind = known_kinds()[cause["kind"]]
        kinds = {each for each in kind.seen_as.split() if each not in WEAK or kind.layer == "guest_firewall"}
        findings = [
            fact
            for fact in self.facts(ids)
            if fact.tier == CAPTURE.tier and fact.property == "finding" and fact.value in kinds
        ]
        ends = _ends_of(cause) or [str(cause["resource"])]
        addresses = {address for end in ends for address in addresses_of(self.network, end)}
        return [fact for fact in findings if not addresses or addresses.intersection(fact.subject)]

    def _answered(self, cause: Mapping[str, Any]) -> Fact | None:
        """Return what a capture of the session saw answered of a cause's flow, where nothing of it was unanswered."""
        flow = cause.get("flow") or {}
        here, there = (addresses_of(self.network, str(flow.get(end) or "")) for end in ("source", "destination"))
        wanted = {(source, destination, str(flow.get("port"))) for source in here for destination in there}
        captures = [each for each, record in self._evidence.items() if tag_of(record) == CAPTURE]
        seen = [fact for fact in self.facts(captures) if fact.subject in wanted]
        if any(fact.property == "unanswered" and fact.value != "0" for fact in seen):
            return None
        return next((fact for fact in seen if fact.property == "answered" and fact.value != "0"), None)

    def _titled(self, cause: Mapping[str, Any], ids: Sequence[str]) -> list[str]:
        """Return the findings that a capture's summary names, about the flow's ends."""
        titles = [fact.value for fact in self.facts(ids) if fact.tier == CAPTURE.tier and fact.property == TITLE]
        ends = _ends_of(cause)
        names = [*ends, *(address for end in ends for address in addresses_of(self.network, end))]
        return [title for title in titles if not names or _names(title, names)]

    def _leads(self, route: Fact, cause: Mapping[str, Any]) -> bool:
        """Return whether a route covers an end of a cause's flow; of one whose ends are not known, it does."""
        addresses = [
            address for end in _ends_of(cause) for address in addresses_of(self.network, end) if is_address(address)
        ]
        return not addresses or any(covers_address(route.subject[-1:], each, ServiceTags()) for each in addresses)

    def _has_rule(self, fact: Fact, cause: Mapping[str, Any]) -> bool:
        """Return whether a fact is about the rule that a cause names, in its direction; a cause may name none."""
        rule = _plain(cause.get("rule") or "")
        own = set(map(_plain, (*fact.subject[-2:], fact.value)))
        named = not rule or rule in own or bool(own.intersection(_WORD.findall(rule)))
        if not named or fact.property != "access" or not cause.get("direction"):
            return named
        direction = [
            f.value for f in self._facts_of(fact.record) if (f.subject, f.property) == (fact.subject, DIRECTION)
        ]
        return not direction or cause["direction"] in direction


def _ends_of(cause: Mapping[str, Any]) -> list[str]:
    flow = cause.get("flow") or {}
    return [str(flow[end]) for end in ("source", "destination") if flow.get(end)]


def _is_about(fact: Fact, subject: str) -> bool:
    """Return whether a fact is about what a claim names: a part of something by its own name, or with its owner's."""
    named, own = tuple(map(_plain, names_in(subject))), tuple(map(_plain, fact.subject))
    if len(own) < 2 or fact.tier == CAPTURE.tier:
        return set(named) <= set(own)
    return set(named) <= set(own) and (named == own or named != own[: len(named)])


def _is_of(fact: Fact, resource: str) -> bool:
    """Return whether a fact is about a resource or a part of it."""
    named = names_in(resource)
    return bool(named) and _plain(named[-1]) in map(_plain, fact.subject)


def _meets(demand: Demand, fact: Fact) -> bool:
    if fact.property == demand.or_none:
        return True if demand.or_none == "first_address" else fact.value == NONE
    if fact.property != demand.property:
        return False
    if demand.other_than:
        return _plain(fact.value) != _plain(demand.other_than)
    return not demand.value or _plain(fact.value) == _plain(demand.value)


def _misworded(text: str, facts: Sequence[Fact]) -> Iterator[str]:
    """Yield what the cited records say otherwise, where the words of a clause are a value of a property."""
    for clause in filter(None, _CLAUSES.split(text)):
        if UNCERTAIN.search(clause):
            continue
        stated = [words for words in fact_shapes().words if re.search(words.words, clause, re.IGNORECASE)]
        if len(stated) == 1:
            yield from _contradicted(clause, stated[0], facts)


def _contradicted(clause: str, words: Words, facts: Sequence[Fact]) -> Iterator[str]:
    of_property = [fact for fact in facts if fact.property == words.property]
    named = [fact for fact in of_property if _names(clause, fact.subject[-1:])]
    about = named or ([] if words.named else of_property)
    if about and not {_plain(fact.value) for fact in about}.intersection(map(_plain, words.values)):
        yield _says(about)


def _names(clause: str, names: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", clause, re.IGNORECASE) for name in names)


def _says(facts: Sequence[Fact]) -> str:
    records = _listed(dict.fromkeys(fact.record for fact in facts[:MAX_TOLD]))
    said = "; ".join(dict.fromkeys(one_line(str(fact), 160) for fact in facts[:MAX_TOLD]))
    return f"{records} does not show it: it says {said}"


def _place(cause: Mapping[str, Any]) -> str:
    rule = f" {cause['rule']}" if cause.get("rule") else ""
    return f"{'/'.join(names_in(str(cause['resource'])))}{rule}"


def _listed(ids: Iterable[str]) -> str:
    known = list(ids)
    more = f" and {len(known) - MAX_TOLD} more" if len(known) > MAX_TOLD else ""
    return f"{', '.join(known[:MAX_TOLD])}{more}" or "nothing"


def _plain(value: str) -> str:
    return value.casefold().removeprefix("vm ").strip()
