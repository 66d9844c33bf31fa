"""What the types of values promise beyond the programs' own examples."""

from __future__ import annotations

from pathlib import Path

from ghost.shell.judge.value_types import Roots, parse_type


def test_no_report_is_written_where_the_shell_keeps_its_audit(tmp_path: Path) -> None:
    check, roots = parse_type("DIRECTORY"), Roots((tmp_path,))
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "shell_audit_1.jsonl").touch()
    (tmp_path / "link").symlink_to(tmp_path / "audit")

    for name in ("audit", "audit/", "audit/reports", "link", "reports/../audit", "link/x/y"):
        assert check(str(tmp_path / name), roots) is not None, name
    for name in ("reports", "reports/audit", "auditing", "."):
        assert check(str(tmp_path / name), roots) is None, name


def test_a_name_like_an_audits_above_the_roots_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "shell_audit_1.jsonl").touch()
    (tmp_path / "captures").mkdir()

    assert parse_type("DIRECTORY")(str(tmp_path / "captures" / "reports"), Roots((tmp_path / "captures",))) is None
