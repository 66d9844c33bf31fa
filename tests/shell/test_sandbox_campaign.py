"""A sample of the adversarial corpus, run as if it were SAFE, in namespaces of its own. All of it: `benchmarks`."""

from __future__ import annotations

import pytest
from benchmarks.sandbox_campaign import CONTROLS, REQUIRED_SHARE, NotPermittedError, campaign, commands

from ghost.shell.run.sandbox import this_kernel
from tests.exhaustive import EXHAUSTIVE

ATTACKS = [
    *(
        "touch /tmp/x",
        "rm -rf /scratch/work",
        "chmod 777 /scratch/work/notes.txt",
        "hostname other",
        "ip link set lo down",
    ),
    *("ip addr add 192.0.2.9/32 dev lo", "kill -9 -1", "cat /etc/ghost-canary", "curl file:///etc/ghost-canary"),
    *(
        "dig -f /scratch/home/.ssh/id_rsa",
        "tcpdump -r /tmp/captures/a.cap -w /scratch/work/w.pcap",
        "ss -tp -F /etc/ghost-canary",
    ),
    *("mount -t tmpfs tmpfs /mnt", "sed -i s/a/b/ /scratch/work/notes.txt", "sh -c 'echo x > /scratch/work/y'"),
    *(
        "setsid touch /scratch/work/z",
        "setsid --fork sleep 50",
        "nohup touch /scratch/work/z",
        "flock /scratch/work/x true",
    ),
    *(
        "lsof -i -D b/scratch/work/z",
        "netstat -tlnp",
        "lsof -nP -i",
        "truncate -s 0 /scratch/work/notes.txt",
    ),
    *("find /scratch -delete", "unshare -Ur true", "sysctl -w kernel.hostname=other", "cp /etc/passwd /scratch/work/p"),
]


@pytest.mark.needs("unshare", "mount", "tcpdump", "ip", "curl", "dig")
def test_commands_taken_for_safe_by_mistake_change_and_reveal_nothing() -> None:
    if this_kernel().landlock < 6:
        pytest.skip("the kernel has no Landlock of version 6")
    try:
        result = campaign([*ATTACKS, *commands(sample=3_000 if EXHAUSTIVE else 30, seed=20)], timeout_seconds=0.4)
    except NotPermittedError as error:
        pytest.skip(str(error))
    assert (result.changed, result.leaked) == ([], [])
    assert result.controls_seen == len(CONTROLS)
    assert result.started >= REQUIRED_SHARE * result.installed > len(ATTACKS)
    assert result.ok
