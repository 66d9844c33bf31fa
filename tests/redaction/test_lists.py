"""Several secrets under one name: all of a list goes, however long it is; counts and lists of words stay."""

from __future__ import annotations

import pytest

from ghost.shell import redact

FIRST, SECOND, THIRD = "q7Rk2Lm9Pw4Rt7Vb", "z8Tx3Nn1Qa5Su6Wc", "m4Yb6Kk2Ld9Xe1Zr"


@pytest.mark.parametrize("name", ["passwords", "secrets", "api_keys", "tokens"])
@pytest.mark.parametrize("count", [450, 5_000])
def test_every_item_below_a_name_goes(name: str, count: int) -> None:
    text = redact(f"{name}:\n" + "".join(f"- q7Rk{n:05}Lm9Pw\n" for n in range(count)) + "other: x\n")[0]
    assert "q7Rk" not in text
    assert text.endswith("other: x\n")
    assert text.count("\n") == count + 2


@pytest.mark.parametrize("end", ["\n}", "", "\n[truncated: 9 lines omitted]\n"])
def test_every_member_of_an_object_of_tokens_goes_though_it_is_no_whole_json(end: str) -> None:
    members = ",\n".join(f'  "n{n}": "q7Rk{n:05}Lm9Pw"' for n in range(2_000))
    assert "q7Rk" not in redact(f'log line\n"tokens": {{\n{members}{end}')[0]


@pytest.mark.parametrize(
    "text",
    [
        f"tokens:\n- {FIRST}\n- {SECOND}\n",
        f"bootstrap_tokens:\n  - {FIRST}\n  - {SECOND}\n",
        f"tokens: [{FIRST}, {SECOND}]",
        f'{{"tokens": ["{FIRST}", "{SECOND}"]}}',
        f'PASSWORDS=("{FIRST}" "{SECOND}")',
        f'PASSWORDS=("{FIRST}" "{SECOND}" "{THIRD}")\nx="1"',
        f"export API_TOKENS=('{FIRST}' '{SECOND}' '{THIRD}')",
        f"PASSWORDS=(\n  '{FIRST}'\n  '{SECOND}'\n  '{THIRD}'\n)\n",
        "PASSWORDS=(" + " ".join(f'"{FIRST}{n}"' for n in range(100)) + ")",
    ],
)
def test_a_list_under_the_name_of_several_goes_whole(text: str) -> None:
    redacted = redact(text)[0]
    assert not any(secret in redacted for secret in (FIRST, SECOND, THIRD))


@pytest.mark.parametrize(
    "text",
    [
        '{"tokens": 1834}',
        '"tokens": [1, 2, 3]',
        "tokens: [alpha, beta]",
        "tokens:\n- alpha\n- beta\n",
        "total_tokens: 123456",
        "tokens: 4096 of 8192",
        '{"prompt_tokens": 12, "completion_tokens": 1300}',
        "max_tokens=4096",
        "tokens per second: 61.5",
    ],
)
def test_counts_and_words_stay(text: str) -> None:
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["mysql", "-uroot", "-pX y\'z-9"]', '["mysql", "-uroot", "-p[REDACTED]"]'),
        ("- redis-cli\n- -a\n- X y-9\n- ping\n", "- redis-cli\n- -a\n- [REDACTED]\n- ping\n"),
        ('["a", "-x"]\n["sshpass", "-p", "p q"]', '["a", "-x"]\n["sshpass", "-p", "[REDACTED]"]'),
        ('["mysql", "-p", "shop"]', '["mysql", "-p", "shop"]'),
        ('["mkdir", "-p", "/x"]\n- mysql\n- x\n', '["mkdir", "-p", "/x"]\n- mysql\n- x\n'),
    ],
)
def test_arguments_in_a_list_are_read_as_the_line_they_make(text: str, expected: str) -> None:
    assert redact(text)[0] == expected
