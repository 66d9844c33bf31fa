"""Filters of captures: what is taken, what is refused, and what az is given."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ghost.cloud import Wishes
from ghost.cloud.traffic_filters import as_json, capture_filters
from ghost.errors import UsageError

from .conftest import MakeDesk

TAKEN = {
    "tcp * * 10.20.2.5 6379": [{"protocol": "TCP", "remoteIPAddress": "10.20.2.5", "remotePort": "6379"}],
    "udp": [{"protocol": "UDP"}],
    "any 10.0.0.1-10.0.0.9 80-85": [{"protocol": "Any", "localIPAddress": "10.0.0.1-10.0.0.9", "localPort": "80-85"}],
    "tcp * 22, udp * * fd00::1;10.0.0.1 53;5353": [
        {"protocol": "TCP", "localPort": "22"},
        {"protocol": "UDP", "remoteIPAddress": "fd00::1;10.0.0.1", "remotePort": "53;5353"},
    ],
    "tcp [INTERNAL_IP_1] * [INTERNAL_IP_2]": [
        {"protocol": "TCP", "localIPAddress": "[INTERNAL_IP_1]", "remoteIPAddress": "[INTERNAL_IP_2]"}
    ],
    '{"protocol": "UDP", "remotePort": "53"}': [{"protocol": "UDP", "remotePort": "53"}],
    '[{"localPort": "443"}, {}]': [{"protocol": "Any", "localPort": "443"}, {"protocol": "Any"}],
}
REFUSED = (
    *("sctp", "tcp 10.0.0.0/8", "tcp web-vm-01", "tcp * 65536", "tcp * 90-80", "tcp * * 10.0.0.1 $(x)", "tcp * -1"),
    *("tcp 10.0.0.1-fd00::1", "tcp 10.0.0.1-10.0.0.2-10.0.0.3", "tcp * * * * *", "udp,udp,udp,udp,udp,udp", ","),
    *("{", '{"protocol": 6}', '{"remoteport": "53"}', '[["tcp"]]', "[]"),
)


def test_filters_of_words_and_of_json_are_taken() -> None:
    for text, expected in TAKEN.items():
        assert json.loads(as_json(capture_filters(text))) == expected, text


def test_what_azure_does_not_take_is_refused_with_the_form() -> None:
    for text in REFUSED:
        with pytest.raises(UsageError, match=r"PROTOCOL LOCAL LOCAL-PORT"):
            capture_filters(text)


def test_the_far_end_of_a_pair_sees_the_same_traffic_from_its_side(desk: MakeDesk) -> None:
    d = desk()
    d.capture("web-vm-01 to redis-vm", filters="tcp 10.20.1.4 * 10.20.2.5 6379")
    near, far = (shlex.split(command) for command in d.shell.matching("packet-capture create"))
    assert json.loads(near[near.index("--filters") + 1])[0]["remotePort"] == "6379"
    assert json.loads(far[far.index("--filters") + 1]) == [
        {"protocol": "TCP", "localIPAddress": "10.20.2.5", "localPort": "6379", "remoteIPAddress": "10.20.1.4"}
    ]


def test_what_the_person_set_wins_over_the_request(desk: MakeDesk) -> None:
    d = desk(wishes=Wishes("prodlogs", "key", 7, "udp"))
    d.capture(duration_seconds=60, storage_auth_mode="login", filters="tcp")
    (create,) = d.shell.matching("packet-capture create")
    assert "https://prodlogs.blob" in create
    assert "--time-limit 7 " in create
    assert '[{"protocol":"UDP"}]' in create
    assert "--auth-mode key" in d.shell.matching("container exists")[0]


def test_a_capture_that_is_kept_stays_on_this_machine(desk: MakeDesk) -> None:
    d = desk(keep_local_capture=True)
    task_id = d.capture()["task_id"]
    path = Path(d.ask("check_task", task_id=task_id)["result"]["local_pcap_path"])
    answer = d.ask("cleanup_task", task_id=task_id)
    assert (answer["state"], answer["cleanup_status"]) == ("DONE", "completed")
    assert path.is_file()
    assert d.shell.matching("^rm ") == []
    assert len(d.shell.matching("delete")) == 2
