"""Wherever a secret stands beside its name, and however the two are spelled, it goes; what only looks so stays."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.redaction.confusables import in_plain_spelling
from ghost.shell import redact

SECRETS = ("hunter2", "correcthorse", "Tr0ub4dor-3x", "summerRain")

PLACES = {
    "column of two": "name,password\nbob,@\neve,zzzz1",
    "row of two": "key,value\nhost,db1\npassword,@",
    "quoted row": '"key","value"\n"db_password","@"',
    "tabs": "name\tvalue\nDB_PASSWORD\t@",
    "cells": "| password | @ |",
    "record": "-[ RECORD 1 ]----\nuser     | bob\npassword | @",
    "insert": "INSERT INTO t (user, password) VALUES ('bob', '@'), ('eve', 'x;y')",
    "markdown": "- **Password:** @",
    "backticks": "**Password**: `@`",
    "list": "passwords:\n  - @\n  - other1",
    "arrow": "password -> @",
    "typographic arrow": "password → @",
    "leaders": "Password . . . . : @",
    "leaders and no colon": "Password ........... @",
    "dialogue": "Password: \n@",
    "short name": "user=bob pw=@ host=x",
    "abbreviation": "pswd: @",
    "another language": "пароль: @",
    "Chinese": "密码：@",
    "attribute": '<add key="password" value="@"/>',
    "attribute before its name": '<add value="@" key="password"/>',
    "form": '<input type="password" name="pw" value="@">',
    "cells of a page": "<td>Password</td><td>@</td>",
    "definition": "<dt>Password</dt><dd>@</dd>",
    "CDATA": "<password><![CDATA[@]]></password>",
    "fields": '{"Key": "password", "Value": "@"}',
    "fields of a parameter": '{"ParameterKey": "DBPassword", "ParameterValue": "@"}',
    "fields of YAML": "- key: password\n  val: @",
    "fields of a log": "name=password value=@",
    "pair": '[["user","bob"],["password","@"]]',
    "below": '{"password": {"type": "string", "default": "@"}}',
    "below in YAML": "password:\n  value: @",
    "on the next line": "password:\n  @",
    "variable": 'variable "password" {\n  default = "@"\n}',
    "typed": 'const password: string = "@";',
    "conditional": "DB_PASSWORD ?= @",
    "dotted pair": '(password . "@")',
    "concatenation": 'password = "@" + "tail99"',
    "continued string": 'password = ("@"\n            "tail99")',
    "arguments": "args: [--password, @]",
    "listed arguments": "- --password\n- @",
    "option of Windows": "tool /password:@ /user:bob",
    "substitution": "set private-key <(echo @)",
    "multipart": 'Content-Disposition: form-data; name="password"\n\n@\n--b',
    "call": 'login("bob", "@")',
    "tuple": 'auth=("bob", "@")',
    "login": "credentials: bob/@",
    "login in a sentence": "login with ops / @ please",
    "options beside a user": "tool -u bob -p @",
    "standard input": "echo @ | docker login --password-stdin",
    "here-string": 'kinit bob <<< "@"',
    "JSON escape": '{"pass\\u0077ord": "@"}',
    "entity": "&quot;password&quot;:&quot;@&quot;",
    "element of entities": "&lt;password&gt;@&lt;/password&gt;",
    "octal": "password\\075@",
    "no-break blank": "password\u00a0=\u00a0@",
    "wide sign": "password\uff1d@",
    "wide letters": "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44=@",
    "letter of another alphabet": "p\u0430ssword: @",
    "variable of a process": "HOME=/root\0DB_PASSWORD=@\0TERM=xterm",
    "words of a process": "mysql\0-uroot\0-p@\0db",
    "UTF-16": "\0".join("password=@;") + "\0",
    "three quotes": 'password = """\n@\n"""',
    "three single quotes": "password = '''@'''",
    "element below its name": "<AdministratorPassword><Value>@</Value></AdministratorPassword>",
    "fields with a type": '{"name": "password", "type": "string", "value": "@"}',
    "list below its name": '"adminPassword":[{"name":"u","value":"@"}]',
    "default of a template": "password: {{ x | default('@') }}",
    "reference and more": "password: {{ prefix }}@",
    "users on one line": "chpasswd: {list: 'root:@'}",
    "parameter of one letter": "GET /query?u=bob&p=@&db=x",
    "quotation marks of print": "password: \u201c@\u201d",
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_goes_wherever_it_stands_beside_its_name(place: str, secret: str) -> None:
    text = PLACES[place].replace("@", secret)
    once, found = redact(text)
    assert secret not in once
    assert "tail99" not in once
    assert found["redactions_applied"]
    assert redact(once) == (once, {"redactions_applied": False, "redaction_count": 0, "redaction_categories": []})


SENTENCES = {
    "of a person": ("password for user ops: ZHpjhq+oVPJV4", "ZHpjhq+oVPJV4"),
    "generated": ("Temporary password generated: YKoXaT_COs4l2", "YKoXaT_COs4l2"),
    "aside": ("password (temporary): GNLlAE%gX39V1", "GNLlAE%gX39V1"),
    "quoted": ('new root pw is now "Gewkfo!aRGx86"', "Gewkfo!aRGx86"),
    "name behind": ("use Gewkfo!aRGx86 as the root password", "Gewkfo!aRGx86"),
    "token": (
        "use token e05fd4ca35d4946abd584221a6e968af2fe45641 when calling the API",
        "e05fd4ca35d4946abd584221a6e968af2fe45641",
    ),
    "changed": ("password of bob changed from kJ8sLq2PzX to qW3eRt5YuI", "kJ8sLq2PzX"),
}


@pytest.mark.parametrize(("text", "secret"), SENTENCES.values(), ids=list(SENTENCES))
def test_a_secret_that_a_sentence_tells_goes(text: str, secret: str) -> None:
    assert secret not in redact(text)[0]


STAYS = [
    "password: {{ vault_db_password }}",
    'password: "{{ db_password }}"  # from the vault',
    "password={{db.password}}",
    "password = %(DB_PASSWORD)s",
    "password: #{db_password}",
    "token: <%= ENV['TOKEN'] %>",
    "password=@@DB_PASSWORD@@",
    "password: |",
    "secrets: 4 configured",
    "tokens: 3 active, 1 expired",
    "credentials provider: ManagedIdentityCredential",
    "password policy: strong",
    "Authorization: Bearer",
    "ssh://deploy-user@host1/x",
    "https://my-organization-name@dev.azure.com/x",
    "recovery codes: none",
    "Peer 10.0.0.1, Name router1",
    "VRRPv2, Advertisement, vrid 1, authtype none, intvl 1s",
    '{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}',
    '{"d": 3, "p": "99th percentile of latency", "q": "x"}',
    'FATAL:  password authentication failed for user "postgres"',
    "systemd[1]: Started Dispatch Password Requests to Console.",
    "Public key token: b77a5c561934e089",
    "primary key violated",
    "PASS: test_login (0.01s)",
    "user,role\nbob,admin",
    "| Name | Password | Role |",
    "name,password,role",
    "Enter name, password and role",
    "<th>Password</th><th>Role</th>",
    '{"name": "host", "value": "db1"}, {"name": "password", "required": true}',
    "- name: host\n  value: db1\n- name: DB_PASSWORD\n  valueFrom: x",
    "imagePullSecrets:\n  - registry",
    "secrets:\n  - db_password\n  - api_token",
    "ssh -l bob -p 2222 host",
    "docker run -u bob -p 8080:80 img",
    "login: 10:32",
    "错误：文件不存在",
    "a &amp; b &lt;c&gt; \\u0041",
    "INSERT INTO t (user, role) VALUES ('bob', 'admin')",
    'author("bob", "text")',
]


@pytest.mark.parametrize("text", STAYS)
def test_what_only_looks_so_stays(text: str) -> None:
    assert redact(text)[0] == text


def test_lines_without_a_secret_keep_their_spelling() -> None:
    text = "结果：好\npassword\uff1dhunter2\n&lt;b&gt;"
    assert redact(text)[0] == "结果：好\npassword=[REDACTED]\n&lt;b&gt;"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["password", "x", "name"]), min_size=1, max_size=3), st.integers(0, 7))
def test_json_with_escaped_letters_stays_json(names: list[str], at: int) -> None:
    escaped = [
        name[: at % len(name)] + f"\\u{ord(name[at % len(name)]):04x}" + name[at % len(name) + 1 :] for name in names
    ]
    text = "{" + ", ".join(f'"{name}{n}": "hunter2 \\u0022 x"' for n, name in enumerate(escaped)) + "}"
    clean = redact(text)[0]
    assert json.loads(clean).keys() == json.loads(text).keys()
    assert not any(name.startswith("password") and "hunter2" in value for name, value in json.loads(clean).items())


def test_a_plain_spelling_is_its_own() -> None:
    for text in ("\\u00e9", "\\\\u0041", "é", "\\u0022"):
        assert in_plain_spelling(in_plain_spelling(text)) == in_plain_spelling(text)


@pytest.mark.parametrize(
    "text",
    [
        "password: $(Tr0ub4dor",
        "password: $(hunter2)Tr0ub4dor",
        'password: str = "Tr0ub4dor"',
        'password = base64.b64decode("Tr0ub4dor")',
        "password | text | no\nTr0ub4dor | abc | yes\n",
        "password: varchar(64)Tr0ub4dor",
        '"password": "[Secret(Tr0ub4dor)]"',
    ],
)
def test_what_only_begins_like_a_reference_a_type_or_a_call_goes(text: str) -> None:
    assert "Tr0ub4dor" not in redact(text)[0]


REPEATED = [
    *('"kty": "RSA", "d": "', '{"kty": "RSA"', "A=1\0b\0", "\0a", "https://a1b2c3", 'password = """', "password = '''"),
    *("password: {{ x ", "backup codes: 1a-22b ", 'priority=1 auth="', "PAP, Auth-Req Peer ", "SNMPv2c C=", "u=b&p="),
    *('"name": "password", "value": ', "key=password ", "<td>password</td>", "password,", "password|", "password\t"),
    *("password . . ", "password -> ", "p\\u0061ss", "&quot;", "\uff50", "INSERT INTO t (password) VALUES (", "('x', "),
    *(
        'password = "a" + ',
        "passwords:\n  - a\n",
        "password for bob ",
        "echo x | ",
        "-u a -p ",
        'auth=("a", ',
        "a:b/c ",
        '{"value":"x","id":"https://k.vault.azure.net/secrets/a",',
        '\\"id\\":"https://k.vault.azure.net/secrets/a ',
        "recovery codes: abcd-efgh ",
        'password = client.get_secret("',
        "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.",
        "secrets: use a key ",
        "shared-key : Manage VPN ",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", REPEATED)
def test_time_grows_with_length_and_no_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        runs = []
        for _ in range(3):
            started = time.process_time()
            redact(text)
            runs.append(time.process_time() - started)
        return min(runs)

    assert seconds(64_000) < 4 * seconds(32_000) + 0.05
