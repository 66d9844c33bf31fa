"""What a person is shown of a command: its parse, the rule that decided, and the nearest command that is SAFE."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell.judge.classification import decide
from ghost.shell.judge.explanation import explain
from tests.each_row import each
from tests.exhaustive import examples

ROOTS = ["/tmp/captures"]


@each(
    "command, safe_form",
    [
        ("ping -f 10.0.0.1", "ping 10.0.0.1"),
        ("ping -4fc 4 10.0.0.1", "ping -4c 4 10.0.0.1"),
        ("sudo ping 10.0.0.1", "ping 10.0.0.1"),
        ("nohup ping 10.0.0.1", "ping 10.0.0.1"),
        ("/opt/x/dig a.example", "dig a.example"),
        ("mtr -t 10.0.0.1", "mtr 10.0.0.1"),
        ("curl a.example:8080", "curl http://a.example:8080"),
        ("curl -X POST -d x=1 http://a.example", "curl http://a.example"),
        ("ping -f 10.0.0.1 | grep x", "ping 10.0.0.1 | grep x"),
        ("ping -c 4 10.0.0.1 | sh | grep x", "ping -c 4 10.0.0.1 | grep x"),
        ("ping -c 4 10.0.0.1 > x", "ping -c 4 10.0.0.1"),
        ("tshark -r /tmp/captures/a.pcap -w /tmp/x", "tshark -r /tmp/captures/a.pcap"),
        ("dig -f names a.example", "dig a.example"),
        ("az vm list -g prod-rg --debug", "az vm list -g prod-rg"),
        ("python3 pcap_forensics.py /tmp/captures/a.cap --dask tcp://x", "pcap-forensics /tmp/captures/a.cap"),
        ("telnet 10.0.0.5 443", "nc -zv -w 5 10.0.0.5 443"),
        ("telnet 169.254.169.254 80", None),  # the form there is would lead to a metadata service
        ("ping6 -f ::1", "ping6 ::1"),
        ("curl -sL http://a.example", "curl -s http://a.example"),
        ("nslookup", None),
        ("dig +https-post @10.0.0.4 a.example", "dig @10.0.0.4 a.example"),
        ("ping -c 1 $(id)", None),
        ("resolvectl 'flush'-caches", None),
        ("ethtool -K eth0 tso off", None),
        ("tracepath 10.0.0.1 10.0.0.2", None),
        ("az vm list --out table", "az vm list --output table"),
        (
            "az network vpn-connection list -g g",
            "az network vpn-connection list -g g --query '[].{name:name,connectionStatus:connectionStatus,"
            "ingressBytesTransferred:ingressBytesTransferred,egressBytesTransferred:egressBytesTransferred}'",
        ),
        ("ip link set eth0 up", None),
        ("az vm delete -n v", None),
        ("rm -rf /", None),
        ("no-such-program -x y", None),
        ("", None),
        ("'", None),
    ],
)
def test_the_nearest_safe_command_changes_options_and_never_what_is_asked(command: str, safe_form: str | None) -> None:
    told = explain(command, ROOTS)

    assert told["safe_form"] == safe_form
    assert told["fix"]
    if safe_form is not None:
        assert decide(safe_form, None).classification == "SAFE"
        assert safe_form in told["fix"]


@each(
    "command, difference",
    [
        ("curl -sL http://a.example", "(not the same command: without -L)"),
        ("sudo ping -f 10.0.0.1 | grep x", "without sudo, without -f"),
        ("telnet 10.0.0.5 443", "it is nc, which shows much the same"),
        ("/opt/x/ss -tln", None),
    ],
)
def test_a_safe_form_is_never_passed_off_as_the_command_that_was_asked_for(
    command: str, difference: str | None
) -> None:
    fix = explain(command, ROOTS)["fix"]

    assert difference in fix if difference else "not the same" not in fix


def test_the_parse_is_that_of_the_program() -> None:
    told = explain("ping -4nc3 '10.0.0.1' -W 2 | sort -u > x", ROOTS)

    assert told["parse"] == {
        "program": "ping",
        "options": [
            {"option": "-4", "value": None},
            {"option": "-n", "value": None},
            {"option": "-c", "value": "3"},
            {"option": "-W", "value": "2"},
        ],
        "operands": ["10.0.0.1"],
        "operators": ["|", ">"],
        "quoted": ["10.0.0.1"],
        "other_commands": ["sort -u"],
    }


def test_a_safe_command_is_told_with_what_the_shell_adds() -> None:
    told = explain("tshark -r /tmp/captures/a.pcap -qz conv,tcp", ROOTS)

    assert (told["classification"], told["fix"], told["safe_form"]) == ("SAFE", None, None)
    assert told["arguments"][:2] == ["tshark", "-n"]
    assert told["variables"]["WIRESHARK_CONFIG_DIR"] == "/nonexistent"
    assert told["parse"]["options"] == [
        {"option": "-r", "value": "/tmp/captures/a.pcap"},
        {"option": "-q", "value": None},
        {"option": "-z", "value": "conv,tcp"},
    ]


def test_values_of_az_options_are_told_apart_from_its_words() -> None:
    told = explain("az vm list --query \"[?a == 'x'].name\" --show-details -o=json", ROOTS)

    assert told["parse"]["operands"] == ["vm", "list"]
    assert told["parse"]["options"][:2] == [
        {"option": "--query", "value": "[?a == 'x'].name"},
        {"option": "--show-details", "value": None},
    ]


@settings(max_examples=examples(50))
@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(["ping", "-c", "-f", "--x=y", "az", "vm", "list", "|", ">", "'", "\\", "sudo", "4", "@", "$x"])
    ).map(" ".join)
)
def test_any_text_is_explained(command: str) -> None:
    told = explain(command, ROOTS)

    assert told["classification"] == decide(command).classification
    assert told["safe_form"] is None or decide(told["safe_form"]).classification == "SAFE"
