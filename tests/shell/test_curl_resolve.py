"""curl options that choose who is asked: what they lead to is judged as if it stood in the URL."""

from __future__ import annotations

from ghost.shell.judge.classification import decide
from ghost.shell.judge.network.curl_resolve import fault_of_target, target_hosts
from tests.each_row import each


@each(
    "option, value, hosts",
    [
        ("--resolve", "a.example:443:10.0.0.4", ("10.0.0.4",)),
        ("--resolve", "A.example:443:[fd00::4],10.0.0.4", ("fd00::4", "10.0.0.4")),
        ("--connect-to", "a.example:443:10.0.0.4:8443", ("10.0.0.4",)),
        ("--connect-to", "::origin.example:", ("origin.example",)),
        ("--connect-to", "::[fd00::4]:443", ("fd00::4",)),
    ],
)
def test_an_address_that_may_stand_in_a_url_may_be_led_to(option: str, value: str, hosts: tuple[str, ...]) -> None:
    assert fault_of_target("https://a.example/status", option, value) is None
    assert target_hosts(option, value) == hosts
    assert decide(f"curl {option} '{value}' https://a.example/status").hosts == hosts


@each(
    "option, value",
    [
        *(("--resolve", f"a.example:443:{to}") for to in ("169.254.169.254", "[fd00:ec2::254]", "168.63.129.16")),
        *(
            ("--resolve", f"a.example:443:{to}")
            for to in ("0x7f.1", "fd00::4", "b.example", "", "10.0.0.4,", "[::127.0.0.1]")
        ),
        *(("--resolve", value) for value in ("*:443:10.0.0.4", "+a.example:443:10.0.0.4", "a.example:80:10.0.0.4")),
        *(
            ("--resolve", value)
            for value in ("b.example:443:10.0.0.4", "a.example:443", ":443:10.0.0.4", "a.example::10.0.0.4")
        ),
        *(
            ("--connect-to", f"::{to}")
            for to in ("169.254.169.254:443", "metadata.google.internal:443", "10.0.0.4:2375")
        ),
        *(("--connect-to", f"::{to}") for to in ("0xA9FEA9FE:", ":", ":8443", "10.0.0.4:0", "10.0.0.4:70000", "u@b:1")),
        *(
            ("--connect-to", value)
            for value in ("b.example:443:10.0.0.4:443", "a.example:80:10.0.0.4:443", "::10.0.0.4")
        ),
    ],
)
def test_what_is_no_plain_harmless_place_is_not_led_to(option: str, value: str) -> None:
    assert fault_of_target("https://a.example/status", option, value) is not None
    assert decide(f"curl {option} '{value}' https://a.example/status").classification == "RISKY"


def test_a_path_that_gives_secrets_away_stays_one_whoever_is_asked() -> None:
    assert fault_of_target("http://a.example/latest/meta-data", "--resolve", "a.example:80:10.0.0.4") is not None
    assert fault_of_target("http://a.example:9200/health", "--resolve", "a.example:9200:127.0.0.1") is not None
    assert fault_of_target("http://a.example:9200/health", "--resolve", "a.example:9200:10.0.0.4") is None
