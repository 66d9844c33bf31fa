"""How the dashboard's files are served; what is in them is tested beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ghost.server.app import create_app
from tests.server.conftest import client_of, problem


@pytest.fixture
def client(make_app, tmp_path: Path) -> Iterator[TestClient]:
    folder = tmp_path / "ui"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Ghost</title>")
    (folder / "js" / "app.js").write_text("export {};")
    (folder / "notes.py").write_text("not for the web")
    (folder / "link.js").symlink_to("/etc/hostname")
    of = make_app(api_token="a-token-of-this-test").services
    app = create_app(
        of.engine,
        None,
        of.settings,
        of.workspace,
        embeddings=of.embeddings,
        redact=of.redact,
        dashboard=folder,
    )
    return client_of(app)


def test_the_index_is_at_ui_without_a_token(client: TestClient) -> None:
    for path in ("/ui", "/ui/"):
        answer = client.get(path)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.text.endswith("<title>Ghost</title>")
    assert client.get("/ui/js/app.js").headers["content-type"] == "text/javascript; charset=utf-8"
    problem(client.get("/wm"), 401)


def test_the_root_leads_to_it_with_and_without_a_token(client: TestClient, make_app) -> None:
    for asked in (client, client_of(make_app())):
        answer = asked.get("/", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, "/ui")


def test_the_policy_lets_in_only_what_is_ghosts_own(client: TestClient) -> None:
    policy = client.get("/ui").headers["content-security-policy"]
    directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["connect-src"] == "'self'"
    assert re.fullmatch(r"'self' 'sha256-[\w+/]{43}='", directives["style-src"])
    assert directives["frame-src"] == "blob:"
    assert directives["img-src"] == "'self' blob:"
    assert directives["frame-ancestors"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_file_that_did_not_change_is_not_sent_again(client: TestClient) -> None:
    etag = client.get("/ui").headers["etag"]
    again = client.get("/ui", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    ["/ui/notes.py", "/ui/link.js", "/ui/js", "/ui/js/", "/ui/../app.py", "/ui/%2e%2e/app.py", "/ui/..%5capp.py"],
)
def test_nothing_else_is_a_file_of_the_dashboard(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (401, 404)
    problem(answer, answer.status_code)
