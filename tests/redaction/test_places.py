"""Wherever a secret stands beside its name, and however the two are spelled, it goes; what only looks so stays."""

from __future__ import annotations

import pytest

from ghost.shell import redact

SECRETS = ("hunter2", "correcthorse", "Tr0ub4dor-3x", "summerRain")

PLACES = {
    "column of two": "name,password\nbob,@\neve,zzzz1",
    "row of two": "key,value\nhost,db1\npassword,@",
    "quoted row": '"key","value"\n"db_password","@"',
    "tabs": "name\tvalue\nDB_PASSWORD\t@",
    "cells": "| password | @ |",
    "record": "-[ RECORD 1 ]----\nuser     | bob\npassword | @",
    "markdown": "- **Password:** @",
    "backticks": "**Password**: `@`",
    "list": "passwords:\n  - @\n  - other1",
    "arrow": "password -> @",
    "typographic arrow": "password → @",
    "leaders": "Password . . . . : @",
    "leaders without a blank": "user.........bob\npassword.....@\n",
    "leaders and no colon": "Password ........... @",
    "dialogue": "Password: \n@",
    "short name": "user=bob pw=@ host=x",
    "abbreviation": "pswd: @",
    "another language": "пароль: @",
    "header of an answer": "< Set-Cookie: @; Path=/\n< Date: x >",
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
    "login": "credentials: bob/@",
    "standard input": "echo @ | docker login --password-stdin",
    "here-string": 'kinit bob <<< "@"',
    "variable of a process": "HOME=/root\0DB_PASSWORD=@\0TERM=xterm",
    "words of a process": "mysql\0-uroot\0-p@\0db",
    "UTF-16": "\0".join("password=@;") + "\0",
    "three quotes": 'password = """\n@\n"""',
    "three single quotes": "password = '''@'''",
    "fields with a type": '{"name": "password", "type": "string", "value": "@"}',
    "list below its name": '"adminPassword":[{"name":"u","value":"@"}]',
    "default of a template": "password: {{ x | default('@') }}",
    "reference and more": "password: {{ prefix }}@",
    "users on one line": "chpasswd: {list: 'root:@'}",
}


def test_a_secret_goes_wherever_it_stands_beside_its_name() -> None:
    failed = []
    for place, text in PLACES.items():
        for secret in SECRETS:
            once, found = redact(text.replace("@", secret))
            gone = secret not in once and "tail99" not in once and found["redactions_applied"]
            if not gone or redact(once)[0] != once:
                failed.append((place, secret, once))
    assert failed == []


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


def test_what_only_looks_so_stays() -> None:
    assert [text for text in STAYS if redact(text)[0] != text] == []


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
