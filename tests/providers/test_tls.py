"""Servers behind TLS: a certificate nobody vouches for gets no key, and time is bounded there too."""

from __future__ import annotations

import socket
import ssl
import time

import pytest
import trustme

from ghost.errors import ProviderError
from tests.providers import servers
from tests.providers.dialects import ALL
from tests.providers.servers import ModelServerScript, WaitingClock, answer


class Behind(ModelServerScript):
    """The script behind TLS, with a certificate for 127.0.0.1."""

    authority: trustme.CA

    def _play(self, connection: socket.socket, step: servers.Step) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        try:
            encrypted = context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        super()._play(encrypted, step)

    @property
    def url(self) -> str:
        return super().url.replace("http://", "https://")


def behind_tls(step: servers.Step) -> Behind:
    server = Behind([step])
    server.authority = trustme.CA()
    return server


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_an_unknown_certificate_is_refused_before_anything_is_sent(dialect):
    with behind_tls(answer(200, dialect.text("ok"))) as server:
        with pytest.raises(ProviderError, match="certificate that is not trusted") as caught:
            dialect.model(server.url).generate("SOC", "", 50)
        assert server.requests == []
    assert not caught.value.transient


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_a_certificate_of_an_authority_that_the_machine_trusts_is_taken(dialect, tmp_path, monkeypatch):
    with behind_tls(answer(200, dialect.text("ok"))) as server:
        server.authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert dialect.model(server.url).generate("SOC", "", 50) == "ok"


@pytest.mark.parametrize("step", [servers.silence, servers.dripping_headers, servers.dripping_body])
def test_a_slow_server_behind_tls_ends_with_the_time_of_the_call(step, tmp_path, monkeypatch):
    class RealTime(WaitingClock):
        def monotonic(self) -> float:
            return time.monotonic()

    with behind_tls(step) as server:
        server.authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        model = ALL[0].model(server.url, RealTime(), 0.6)
        begin = time.monotonic()
        with pytest.raises(ProviderError, match="GHOST_PROVIDER_TIMEOUT"):
            model.generate("SOC", "", 50)
        assert time.monotonic() - begin < 10
