from __future__ import annotations

import pytest
import trustme


@pytest.fixture(scope="session")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return str(path)


@pytest.fixture(autouse=True)
def _few_authorities(one_authority: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's SDK loads all authorities for each client, 50 ms; here is one."""
    monkeypatch.setenv("SSL_CERT_FILE", one_authority)
