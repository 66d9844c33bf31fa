"""What a person is told while an investigation runs."""

from ghost.cli import narration


def test_a_command_that_is_not_on_record_is_told_so():
    response = {"status": "completed", "exit_code": 0, "duration_seconds": 0.1, "stderr": ""}
    assert "NOT ON RECORD" not in narration._outcome(response)
    assert narration._outcome({**response, "audit_written": False}).startswith("NOT ON RECORD")
