"""Persistent records: append-only JSONL with a hash chain, atomic JSON files, locks, ids and time.

Does not interpret the records. Files have mode 0600, directories 0700.
"""

from ghost.records.atomic_files import open_regular, private_dir, read_json, write_bytes, write_json, write_text
from ghost.records.chain import (
    ChainedLog,
    Head,
    Verification,
    head_beside,
    head_path,
    parse_record,
    read_lines,
    read_records,
    read_valid_records,
    verify,
)
from ghost.records.clock import Clock, SystemClock, elapsed, isoformat
from ghost.records.lock import SERVER_LOCK, file_lock, is_held, is_locked, workspace_lock
from ghost.records.session_ids import new_command_id, new_session_id, valid_session_id

__all__ = [
    "SERVER_LOCK",
    "ChainedLog",
    "Clock",
    "Head",
    "SystemClock",
    "Verification",
    "elapsed",
    "file_lock",
    "head_beside",
    "head_path",
    "is_held",
    "is_locked",
    "isoformat",
    "new_command_id",
    "new_session_id",
    "open_regular",
    "parse_record",
    "private_dir",
    "read_json",
    "read_lines",
    "read_records",
    "read_valid_records",
    "valid_session_id",
    "verify",
    "workspace_lock",
    "write_bytes",
    "write_json",
    "write_text",
]
