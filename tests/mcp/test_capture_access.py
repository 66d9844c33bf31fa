"""A client names captures of the workspace, and those that the command line allows; nothing else."""

from __future__ import annotations

import pytest

from ghost.errors import UsageError
from ghost.mcp.capture_access import CaptureAccess


@pytest.fixture
def access(tmp_path) -> CaptureAccess:
    for place in ("captures", "allowed", "elsewhere"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.pcap").write_bytes(b"x")
    (tmp_path / "one.pcapng").write_bytes(b"x")
    (tmp_path / "captures" / "out.pcap").symlink_to(tmp_path / "elsewhere" / "a.pcap")
    (tmp_path / "captures" / "in.pcap").symlink_to(tmp_path / "captures" / "a.pcap")
    (tmp_path / "captures" / "notes.txt").write_text("x")
    (tmp_path / "captures" / "dir.pcap").mkdir()
    return CaptureAccess(tmp_path / "captures", [tmp_path / "allowed", tmp_path / "one.pcapng"])


def test_what_is_allowed_is_found_with_links_resolved(access, tmp_path):
    for named in ("a.pcap", "in.pcap", "../captures/a.pcap", str(tmp_path / "captures" / "a.pcap")):
        assert access.path_of(named) == tmp_path / "captures" / "a.pcap"
    assert access.path_of(str(tmp_path / "allowed" / "a.pcap")) == tmp_path / "allowed" / "a.pcap"
    assert access.path_of("../one.pcapng") == tmp_path / "one.pcapng"


def test_nothing_else_is(access, tmp_path):
    wrong = (
        "out.pcap",
        "../elsewhere/a.pcap",
        "/etc/hostname",
        "notes.txt",
        "dir.pcap",
        "none.pcap",
        "",
        ".",
        "a\0.pcap",
    )
    for named in wrong:
        with pytest.raises(UsageError, match="not a capture that may be read"):
            access.path_of(named)
    with pytest.raises(UsageError, match="does not exist"):
        CaptureAccess(tmp_path / "captures", [tmp_path / "gone"])
