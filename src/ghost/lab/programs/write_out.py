"""The variables of curl's `--write-out`."""

from __future__ import annotations

import json
import re

from ghost.lab.programs.http_transfer import Transfer
from ghost.lab.programs.laptop import complain

ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}
PART = re.compile(r"%%|%\{([^}]*)\}|\\[nrt]")


def expand(template: str, transfer: Transfer, number: int) -> str:
    """Replace the variables in `template`; an unknown one is reported and dropped, as in curl."""
    values = variables(transfer, number)

    def replaced(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if found[0] in ESCAPES:
            return ESCAPES[found[0]]
        name = found[1]
        if name == "json":
            return json.dumps({key: _typed(key, value) for key, value in sorted(values.items())}, separators=(",", ":"))
        if name in ("stdout", "stderr", "onerror"):
            return ""
        if name not in values:
            complain(f"curl: unknown --write-out variable: '{name}'")
            return ""
        return values[name]

    return PART.sub(replaced, template)


def variables(transfer: Transfer, number: int) -> dict[str, str]:
    plan = transfer.plan
    connected = transfer.connected > 0
    answered = transfer.http_code > 0
    size = 0 if plan.method == "HEAD" else len(transfer.body)
    code = f"{transfer.http_code:03d}"
    speed = round(size / transfer.total) if transfer.total else 0
    return {
        "content_type": transfer.content_type,
        "errormsg": transfer.error,
        "exitcode": str(transfer.status),
        "filename_effective": "",
        "http_code": code,
        "http_connect": "000",
        "http_version": "1.1" if answered else "0",
        "local_ip": transfer.local_address,
        "local_port": str(transfer.local_port),
        "method": plan.method,
        "num_connects": "1" if connected else "0",
        "num_headers": str(max(transfer.head.count("\r\n") - 2, 0)),
        "num_redirects": "0",
        "redirect_url": "",
        "remote_ip": str(plan.address) if connected else "",
        "remote_port": str(plan.port) if connected else "0",
        "response_code": code,
        "scheme": plan.scheme.upper(),
        "size_download": str(size),
        "size_header": str(len(transfer.head)),
        "size_request": "79" if answered else "0",
        "size_upload": "0",
        "speed_download": str(speed),
        "speed_upload": "0",
        "ssl_verify_result": "0",
        "time_appconnect": f"{transfer.secured:.6f}",
        "time_connect": f"{transfer.connected:.6f}",
        "time_namelookup": f"{transfer.lookup:.6f}",
        "time_pretransfer": f"{max(transfer.connected, transfer.secured):.6f}",
        "time_redirect": "0.000000",
        "time_starttransfer": f"{transfer.first_octet:.6f}",
        "time_total": f"{transfer.total:.6f}",
        "url": plan.url,
        "url_effective": plan.effective_url,
        "urlnum": str(number),
    }


def _typed(name: str, value: str) -> str | int | float | None:
    """Return the value for `%{json}`: numbers plain, empty values as null."""
    if name.startswith("time_"):
        return float(value)
    return int(value) if value.isdigit() and name != "http_version" else value or None
