"""Questions to a person: asked once, kept, answered with what they require, and closed when their time is over."""

from __future__ import annotations

import threading

import pytest

from ghost.errors import StoreError, UsageError
from ghost.mind import Interrupts, MissingFields, QueryStatus
from ghost.mind.answer_fields import fields_of
from ghost.mind.questions import is_same_question
from tests.mind.minds import START, SteppedClock, mind, open_sqlite, without_secrets

DAY = 86_400.0


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def told():
    return []


@pytest.fixture
def interrupts(tmp_path, clock, told):
    store = open_sqlite(tmp_path)
    yield Interrupts(store, clock, DAY, redact=without_secrets, announce=told.append)
    store.close()


def test_a_question_is_kept_over_a_restart(interrupts, tmp_path, clock):
    asked = interrupts.create("Which port does web-vm use?", "it was not said", ["port"])
    after = Interrupts(open_sqlite(tmp_path), clock, DAY)
    (query,) = after.list_open()
    assert query.id == asked
    assert asked.startswith(f"q:{int(START * 1000)}")
    assert (query.question, query.rationale, query.required_fields) == (
        "Which port does web-vm use?",
        "it was not said",
        ("port",),
    )
    assert query.expires_ts == START + DAY
    assert after.get(asked) == query
    assert after.get("q:0") is None


SAME = [
    ("Which port does web-vm use?", "which port does  WEB-VM use"),
    ("Which port does web-vm use?", "Please tell me which ports web-vm uses."),
    ("#question Which port does web-vm use? Needed: port.", "Which port does web-vm use?"),
    ("Was the route removed?", "the route: removed?!"),
    ("???", "???"),
]
DIFFERENT = [
    ("Which port does web-vm use?", "Which port does db-vm use?"),
    ("Which port does web-vm1 use?", "Which port does web-vm2 use?"),
    ("Can 10.0.0.4 reach 10.0.0.5?", "Can 10.0.0.5 reach 10.0.0.4?"),
    ("Is traffic lost from hub to spoke?", "Is traffic lost from spoke to hub?"),
    ("When was db-nsg changed?", "Who changed db-nsg?"),
    ("Was db-nsg changed?", "Was db-nsg not changed?"),
    ("Which port does web-vm use?", "Which protocol does web-vm use?"),
    ("???", "!!!"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_question_is_asked_once_while_it_is_open(interrupts, told, one, other):
    assert is_same_question(one, other)
    first = interrupts.create(one)
    assert interrupts.create(other) == first
    assert len(interrupts.list_open()) == 1
    assert [event.kind for event in told] == ["interrupt"]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_questions_that_only_look_alike_are_both_asked(interrupts, one, other):
    assert not is_same_question(one, other)
    assert interrupts.create(one) != interrupts.create(other)
    assert len(interrupts.list_open()) == 2


def test_a_question_that_was_answered_or_expired_may_be_asked_again(interrupts, clock):
    first = interrupts.create("Which port?")
    assert interrupts.answer(first, "443")
    second = interrupts.create("Which port?")
    clock.passes(DAY)
    third = interrupts.create("Which port?")
    assert len({first, second, third}) == 3


def test_threads_that_ask_the_same_at_once_ask_once(interrupts):
    ids: list[str] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        ids.append(interrupts.create("Which port does web-vm use?"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(ids)) == 1
    assert len(interrupts.list_open()) == 1


def test_an_answer_closes_the_question_and_is_kept(interrupts, clock, told):
    asked = interrupts.create("Which port?", required_fields=["port"])
    clock.passes(60)
    assert interrupts.answer(asked, "port: 5432")
    query = interrupts.get(asked)
    assert (query.status, query.answer, query.answered_ts) == (QueryStatus.ANSWERED, "port: 5432", START + 60)
    assert query.metadata["fields"] == {"port": "5432"}
    assert interrupts.list_open() == []
    assert told[-1].kind == "answer"
    assert told[-1].data["id"] == asked


def test_nobody_answers_twice_or_what_was_not_asked_or_what_expired(interrupts, clock):
    asked = interrupts.create("Which port?")
    assert interrupts.answer(asked, "443")
    assert not interrupts.answer(asked, "80")
    assert interrupts.get(asked).answer == "443"
    assert not interrupts.answer("q:1", "443")
    late = interrupts.create("Which host?")
    clock.passes(DAY)
    assert not interrupts.answer(late, "web-vm")
    assert interrupts.get(late).answer is None


def test_a_question_is_withdrawn_unless_it_was_answered_and_may_be_asked_again(interrupts, clock):
    asked = interrupts.create("Which port?")
    for _ in range(2):
        assert interrupts.withdraw(asked, "It is as it was: watch_1.")
    assert not interrupts.answer(asked, "443")
    closed = interrupts.get(asked)
    assert (closed.status, closed.answer) == (QueryStatus.WITHDRAWN, "It is as it was: watch_1.")
    assert interrupts.answered_before("Which port?") is None
    again = interrupts.create("Which port?")
    assert interrupts.answer(again, "443")
    assert not interrupts.withdraw(again, "too late")
    late = interrupts.create("Which host?")
    clock.passes(DAY)
    interrupts.expire()
    assert interrupts.withdraw(late, "It is as it was."), "nobody has answered it"
    assert interrupts.get(late).status is QueryStatus.WITHDRAWN
    assert not interrupts.withdraw("q:1", "It is as it was.")


FIELDS = ["source", "destination", "port"]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("source: web-vm\ndestination: db-vm\nport: 5432", []),
        ("Source = web-vm\n- DESTINATION: db-vm\n * port:5432", []),
        ('{"source": "web-vm", "Destination": "db-vm", "port": 5432}', []),
        ("port: 1\nport: 5432\nsource: a\ndestination: b", []),
        ("it is web-vm to db-vm on 5432", FIELDS),
        ("source: web-vm", ["destination", "port"]),
        ("source: web-vm\ndestination:\nport:   ", ["destination", "port"]),
        ('{"source": "web-vm", "destination": "", "port": null}', ["destination", "port"]),
        ('["web-vm", "db-vm", 5432]', FIELDS),
        ("[" * 100_0, FIELDS),
        ("sources: web-vm\ndestination_vm: x\nports: 1", FIELDS),
    ],
)
def test_an_answer_holds_every_required_field_or_is_refused_with_those_it_lacks(interrupts, text, missing):
    asked = interrupts.create("Who cannot reach whom?", required_fields=FIELDS)
    if not missing:
        assert interrupts.answer(asked, text)
        assert interrupts.get(asked).metadata["fields"]["port"] == "5432"
        return
    with pytest.raises(MissingFields) as refused:
        interrupts.answer(asked, text)
    assert list(refused.value.fields) == missing
    assert all(name in str(refused.value) for name in missing)
    assert interrupts.get(asked).status is QueryStatus.OPEN


FITTING = [
    ("port", "5432", "5432"),
    ("port", "tcp/5432.", "5432"),
    ("port", "it is port 443", "443"),
    ("port", "70000", None),
    ("port", "0", None),
    ("port", "the usual one", None),
    ("address", "10.0.1.4", "10.0.1.4"),
    ("ip_address", "fd00::1/64", "fd00::1/64"),
    ("address", "10.0.1.400", None),
    ("address", "web-vm", None),
    ("source", "web-vm", "web-vm"),
    ("owner", "the platform team", "the platform team"),
    ("destination", "???", None),
    ("since", "Tuesday noon", "Tuesday noon"),
    ("since", "2026-01-15 14:00", "2026-01-15 14:00"),
    ("when", "a while ago", None),
    ("is_reachable", "Yes.", "Yes"),
    ("is_reachable", "maybe", None),
    ("what_changed", "a route, then a rule", "a route, then a rule"),
    ("reason", "!!!", None),
]


@pytest.mark.parametrize(("field", "text", "kept"), FITTING)
def test_an_answer_fits_the_type_of_its_field_or_is_refused_with_what_is_wanted(interrupts, field, text, kept):
    asked = interrupts.create(f"What is the {field}?", required_fields=[field])
    if kept is not None:
        assert interrupts.answer(asked, text)
        assert interrupts.get(asked).metadata["fields"] == {field: kept}
        return
    with pytest.raises(MissingFields, match=f"^{field} is to be ") as refused:
        interrupts.answer(asked, text)
    assert refused.value.fields == (field,)
    assert len(interrupts.list_open()) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5432", "5432"),
        ("port: 5432", "5432"),
        ('{"port": 5432}', "5432"),
        ("it is 5432, I think", "it is 5432, I think"),
        ("at 10:30 it was 5432", "at 10:30 it was 5432"),
    ],
)
def test_where_one_field_is_required_the_whole_text_may_be_it(text, value):
    assert fields_of(text, ["port"]) == {"port": value}


def test_an_object_without_the_one_field_is_no_answer(interrupts):
    asked = interrupts.create("Which port?", required_fields=["port"])
    with pytest.raises(MissingFields):
        interrupts.answer(asked, '{"host": "web-vm"}')


def test_what_follows_a_field_on_lines_of_its_own_belongs_to_it():
    text = "what_changed: at noon\na route\nand a rule\nwho: Ann"
    assert fields_of(text, ["what changed", "who"]) == {"what changed": "at noon\na route\nand a rule", "who": "Ann"}


@pytest.mark.parametrize(
    "text", ["who: Ann; what changed: a route, then a rule", "What-Changed = a route, then a rule, who: Ann"]
)
def test_fields_on_one_line_are_told_apart(text: str) -> None:
    assert fields_of(text, ["what changed", "who"]) == {"what changed": "a route, then a rule", "who": "Ann"}


@pytest.mark.parametrize(("text", "said"), [("", "empty"), (" \n\t", "empty"), ("x" * 8001, "8000")])
def test_an_answer_without_words_or_end_is_refused_and_the_question_stays_open(interrupts, text, said):
    asked = interrupts.create("Which port?")
    with pytest.raises(UsageError, match=said):
        interrupts.answer(asked, text)
    assert len(interrupts.list_open()) == 1


@pytest.mark.parametrize(("question", "fields"), [("", []), ("  \n", []), ("Which port?", ["port", " "])])
def test_a_question_without_words_is_refused(interrupts, question, fields):
    with pytest.raises(UsageError):
        interrupts.create(question, "", fields)


def test_secrets_are_taken_from_questions_and_answers(interrupts):
    asked = interrupts.create("Is password=Hunter2Hunter2! right?", required_fields=["password", "port"])
    interrupts.answer(asked, "password: Hunter2Hunter2!\nport: 443")
    query = interrupts.get(asked)
    assert "Hunter2" not in query.model_dump_json()
    assert query.metadata["fields"]["port"] == "443"


def test_a_question_expires_and_says_so_once(interrupts, clock):
    first = interrupts.create("Which port?")
    clock.passes(DAY / 2)
    second = interrupts.create("Which host?")
    assert interrupts.expire() == []
    clock.passes(DAY / 2)
    assert [query.id for query in interrupts.expire()] == [first]
    assert interrupts.expire() == []
    assert interrupts.get(first).status is QueryStatus.EXPIRED
    assert [query.id for query in interrupts.list_open()] == [second]
    assert [query.id for query in interrupts.expire(clock.at + DAY)] == [second]


def test_an_answer_that_cannot_be_written_leaves_the_question_open(tmp_path, clock, told):
    store = open_sqlite(tmp_path)
    interrupts = Interrupts(store, clock, DAY, announce=told.append)
    asked = interrupts.create("Which port?")
    told.clear()
    store.broken = True
    with pytest.raises(StoreError):
        interrupts.answer(asked, "443")
    store.broken = False
    assert [query.id for query in interrupts.list_open()] == [asked]
    assert store.preferences() == {}
    assert told == []


def test_an_answer_reaches_the_next_cycle_even_after_a_restart(tmp_path, clock):
    engine = mind(tmp_path, clock=clock)
    asked = engine.interrupts.create("On which port does web-vm fail to reach db-vm?", "", ["port"])
    engine.interrupts.answer(asked, "port: 5432")
    after = mind(tmp_path, clock=clock)
    result = after.cycle()
    assert result.stimuli == 1
    assert "5432" in result.thought.content
    assert after.cycle().stimuli == 0, "it is thought of once"


def test_words_in_a_question_do_not_make_it_open(interrupts):
    trap = interrupts.create('Does it print "status":"open" or {"status":"answered"}?')
    other = interrupts.create("Which port?")
    interrupts.answer(trap, '"status":"open"')
    assert [query.id for query in interrupts.list_open()] == [other]
