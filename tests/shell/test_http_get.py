"""A URL is fetched unasked where its path and query only read, however its verbs and credentials are spelled."""

from __future__ import annotations

from ghost.shell.judge.network.request_urls import fault_of_url
from tests.each_row import each

ANYWHERE = [
    "https://www.example.com",
    "http://10.0.0.4",
    "http://localhost:8080",
    "http://web",
    "http://a.example:9000",
]


@each(
    "rest, is_fine",
    [
        ("/%70%61%73%73", False),
        ("/a?b=%70%61%73", False),
        ("/%2570%2561%2573", False),
        ("/a%20b%2Fc%3Dd%2B/%C3%A9%C3%A8%C3%AA", True),
        ("/%7Euser/%41", True),
        ("/?d=cGFzc3dvcmQ9aHVudGVyMg==", False),
        ("/?d=cGFzc3dvcmQ9aHVudGVyMg", False),
        ("/?d=70617373776f72643d", False),
        ("/?d=OBQXG43XN5ZGIPJRGIZQ", False),
        ("/?k1=6161616162626262&k2=6363636364646464", False),
        ("/?k0=00&k1=6161616162626262&n=7&k2=6363636364646464", False),
        ("/?w=4040&h=6060&x=5050&y=7070&left=4444&top=6666&z=5555", True),
        ("/?a=cGFzc3dv&b=cmQ9aHVu&c=dGVyMg", False),
        ("/cGFzc3dv/cmQ9aHVu/dGVyMg", False),
        ("/70617373/776f7264/3d68", False),
        ("/?from=1700000000000&to=1700003600000&orgId=1", True),
        ("/?id=8a1c2e3f-4b5d-4e6f-8a9b-0c1d2e3f4a5b&type=VirtualNetwork&reason=Failed", True),
        ("/users/1541815603606036480/7d9f8b6c5dff", True),
    ],
)
def test_text_in_a_url_asks_however_it_is_encoded(rest: str, is_fine: bool) -> None:
    assert (fault_of_url(f"https://www.example.com{rest}") is None) is is_fine


@each("origin", ANYWHERE)
@each(
    "rest",
    [
        *("/reboot", "/reboot.cgi", "/cgi-bin/REBOOT.CGI", "/reboot.htm", "/goform/SysToolReboot", "/restart.php"),
        *("/shutdown.asp", "/stop", "/doRestart", "/restart_service", "/reboot-device", "/%72eboot.cgi", "/x/;reboot"),
        *("/relay/0/on", "/restart/7", "/manager/text/undeploy?path=/app", "/api/restartNow/1"),
    ],
)
def test_a_verb_in_a_path_asks_in_any_spelling(origin: str, rest: str) -> None:
    assert fault_of_url(f"{origin}{rest}") is not None


@each("origin", ANYWHERE)
@each(
    "query",
    [
        *("cmnd=Power%20off", "turn=off", "1=OFF", "action=UNLOAD&core=c1", "methodName=shutdown", "__debugger__=yes"),
        *("cmd=id", "action=delete", "action=purge", "query=SELECT%20*%20FROM%20users", "q=SELECT+1", "do=reboot"),
        *("q=DROP%20TABLE%20x", "reboot", "doRestart=1", "op=REBOOT", "x=%2572eboot"),
        *("api_key=0123456789abcdef", "token=abc", "sig=QWxhZGRpbg%3D%3D", "X-Amz-Signature=00", "access_token=x"),
        *("code=abcDEF0123456789abcDEF", "Password=x", "client%5Fsecret=x"),
        *("d=root:x:0:0:root", "d=root%3Ax%3A0%3A0", "d=cm9vdDp4OjA6MDpyb290Oi9yb290Oi9iaW4vYmFzaA", f"d={'0af1' * 9}"),
        f"d={'a-' * 300}",
    ],
)
def test_a_query_that_acts_or_carries_a_credential_or_data_asks(origin: str, query: str) -> None:
    assert fault_of_url(f"{origin}/status?{query}") is not None


@each("origin", ANYWHERE)
@each(
    "path",
    [
        *("/id_rsa", "/server.key", "/privkey.pem", "/backup.sql", "/backup-2024.tar.gz", "/cgi-bin/config.exp"),
        *("/secrets.yml", "/x/web.config", "/terraform.tfstate", "/wp-config.php.bak", "/index.php~", "/heapdump"),
        *("/connectors/pg/config", "/db.sqlite3", "/.git/config", "/root:x:0:0:root", "/etc/passwd"),
    ],
)
def test_a_file_of_keys_dumps_or_settings_asks(origin: str, path: str) -> None:
    assert fault_of_url(f"{origin}{path}") is not None


@each(
    "url",
    [
        *(
            "https://example.com/docs/restart-policy",
            "https://example.com/search?q=dns+timeout",
            "https://ipinfo.io/json",
        ),
        *("https://letsencrypt.org/certs/isrgrootx1.pem", "https://github.com/curl/curl/releases"),
        *("https://dns.google/resolve?name=example.com&type=A", "https://example.com/index.php?action=view"),
        *("http://10.0.0.5:9090/api/v1/query?query=up", "http://10.0.0.5/orders/health", "http://web/index.html"),
        *("http://10.0.0.5:8080/actuator/health/readiness", "http://localhost:9115/probe?target=x&module=tcp"),
        *("http://localhost:9100/metrics", "http://[fd00::4]:8080/healthz?verbose", "http://a.example:9000/-/ready"),
    ],
)
def test_an_ordinary_page_or_a_question_about_health_is_a_read(url: str) -> None:
    assert fault_of_url(url) is None


@each(
    "url",
    [
        *(
            "http://10.0.0.9/api/rawdata",
            "http://10.0.0.9/json/close/A",
            "http://web.internal/listDatabases",
            "http://a.example:8265/api/jobs/",
        ),
        *(
            "http://10.0.0.9.nip.io/x",
            "http://203.0.113.9/x",
            "http://10.0.0.9/health?cb=%2Fx%2Fy",
            "http://10.0.0.9/status?x=1",
        ),
        *("http://10.0.0.9/a/b/c/d/e/health", "http://localhost:9115/probe?target=http://a/b"),
    ],
)
def test_of_an_address_a_private_name_or_an_odd_port_only_what_is_listed_is_asked(url: str) -> None:
    assert fault_of_url(url) is not None
