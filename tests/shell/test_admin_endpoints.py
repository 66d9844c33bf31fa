"""curl asks before it talks to what controls a machine or holds secrets, by port and by path; health is let through."""

from __future__ import annotations

import shlex

from ghost.shell.judge.classification import decide
from tests.each_row import each


def verdict(url: str, *options: str) -> str:
    return decide(shlex.join(("curl", "-s", *options, url))).classification


@each(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.3.2.1", "api.localhost", "[::]", "10.0.0.5", "node.example"],
)
@each(
    "service",
    [
        *(":2375/containers/json", ":2376/info", ":10250/pods", ":10255/pods", ":2379/v2/keys", ":2380/members"),
        *(
            ":8500/v1/kv/?recurse",
            ":8200/v1/secret/data/app",
            ":6443/api/v1/secrets",
            ":8001/api/v1/pods",
            ":4646/v1/jobs",
        ),
        *(":15000/config_dump", ":9901/quitquitquit", ":40342/metadata/identity/oauth2/token", ":50342/oauth2/token"),
        *(":9200/_search", ":6060/debug/pprof/heap", ":2019/config/", ":9229/json"),
    ],
)
def test_a_control_service_is_asked_for_on_any_host(host: str, service: str) -> None:
    for scheme in ("http", "https"):
        assert verdict(f"{scheme}://{host}{service}") == "RISKY"
        assert verdict(f"{scheme}://{host}{service}", "-I") == "RISKY"


@each("path", ["", "/", "/healthz", "/health", "/version", "/v1/sys/health", "/readyz/ping"])
def test_the_health_of_another_hosts_control_service_is_a_read_and_that_of_this_machine_is_asked(path: str) -> None:
    assert verdict(f"https://10.0.0.5:6443{path}") == "SAFE"
    for host in ("127.0.0.1", "localhost", "[::1]", "localhost."):
        assert verdict(f"https://{host}:6443{path}") == "RISKY"


@each(
    "url",
    [
        *(
            "http://a.example/.env",
            "http://a.example/.git/config",
            "http://a.example/%2egit/HEAD",
            "http://a.example//.env",
        ),
        *("http://a.example/x/../.aws/credentials", "http://a.example/%252eenv", "http://a.example/actuator/env"),
        *("http://a.example/Actuator/HeapDump", "http://localhost:8080/api/v1/secrets", "http://a.example/v2/%6beys"),
        *(
            "http://a.example/metadata/identity/oauth2/token",
            "http://a.example/latest/meta-data/",
            "http://a.example/./v1/kv/x",
        ),
        "http://a.example/computeMetadata/v1/",
        *("http://a.example/actuator%3bx/env", "http://a.example/actuator;a/env", "http://a.example/.env%20"),
        *("http://a.example/.env~", "http://a.example/.env.bak", "http://a.example/%25252egit/config"),
        *("http://a.example/api/v1/pods", "http://a.example/apis/apps/v1/namespaces/x/pods"),
        *("http://a.example/api/v1/watch/secrets", "http://a.example/openstack/latest/user_data"),
        *("http://a.example/2021-01-01/meta-data/", "http://localhost:9090/-/quit", "http://localhost:9000/shutdown"),
        f"http://a.example/%{'25' * 4000}2eenv",
    ],
)
def test_a_path_that_gives_secrets_away_is_asked_for_however_it_is_written(url: str) -> None:
    assert verdict(url) == "RISKY"


@each(
    "url",
    [
        *(
            "http://127.0.0.1:8080/healthz",
            "http://localhost:9090/-/healthy",
            "http://localhost/",
            "http://10.0.0.5:8080/api/v1/status",
        ),
        *(
            "https://a.example/.well-known/openid-configuration",
            "http://127.0.0.1:3000/metrics",
            "https://github.com/a/env",
            "https://github.com/a/metadata",
        ),
    ],
)
def test_an_ordinary_page_is_a_read(url: str) -> None:
    assert verdict(url) == "SAFE"


def test_the_refusal_names_the_service() -> None:
    why = decide("curl http://localhost:2375/containers/json").explanation
    assert "containers" in why
    assert "the port of etcd" in decide("curl http://localhost:2379/").explanation


@each(
    "host",
    [
        "metadata.google.internal",
        "169.254.169.254",
        "0xa9fea9fe:80",
        "168.63.129.16",
        "metadata.goog",
        "[fd00:ec2::254]",
        "[fd00:ec2::254]:80",
        "x@169.254.169.254",
    ],
)
def test_no_header_names_a_metadata_service_as_the_host(host: str) -> None:
    assert decide(f"curl -H 'Host: {host}' http://10.0.0.5/").classification == "RISKY"
    assert decide("curl -H 'Host: app.contoso.com:8443' http://10.0.0.5/").classification == "SAFE"
