"""A user's tables add programs and nothing else, and a broken one is a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ghost.errors import ConfigurationError
from ghost.shell import SafeExecShell
from ghost.shell.judge.classification import decide
from ghost.shell.judge.explanation import explain
from ghost.shell.judge.user_tables import VARIABLE, grammars, user_grammars
from ghost.shell.run.kernel import this_kernel

IPCALC = """
program = "ipcalc"
about = "computes with addresses"
clusters = true
flags = ["-b", "-n"]
operands = ["PREFIX"]
at_least = 1

[examples]
safe = ["ipcalc 10.0.0.0/8", "ipcalc -b 10.0.0.0/8", "ipcalc -bn 10.0.0.0/8"]
risky = ["ipcalc", "ipcalc -s 10.0.0.0/8", "ipcalc 10.0.0.0/8 10.1.0.0/16"]
"""

JQ = """
program = "jq"
about = "computes"
flags = ["-n"]
operands = ["INT 0..9"]
[examples]
safe = ["jq -n 1", "jq 1", "jq -n"]
risky = ["jq -f x", "jq -n 1 x", "jq ."]
"""

CHANGES_OR_RUNS = """
iptables iptables-legacy nft tc mount mount.nfs pip pip3.11 helm terraform tofu bpftool podman apt dnf brew
vim.tiny nano emacs gdb zsh xonsh awk perl5.36 node18 systemctl service sysctl modprobe nmcli wg ufw conntrack crontab
ansible-playbook nc.openbsd nc wget git ssh-keygen gpg mysql nsupdate ovs-vsctl bridge parted lvremove useradd kill
tar rsync sort make gcc-12 java nmap tcpreplay iperf3 docker-compose gcloud dd ftp Pip3 RM
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    grammars.cache_clear()
    yield tmp_path
    grammars.cache_clear()


def write(directory: Path, text: str, name: str = "ipcalc.toml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_a_users_program_is_judged_by_the_users_table(directory: Path) -> None:
    write(directory, IPCALC)

    assert decide("ipcalc -b 10.0.0.0/8").classification == "SAFE"
    assert decide("ipcalc -s 10.0.0.0/8").classification == "RISKY"
    assert decide("ping -c 1 127.0.0.1").classification == "SAFE"


@pytest.mark.parametrize("program", ["ping", "az", "bash", "python3", "rm", "env", "cat", "tee", "find", "docker"])
def test_a_users_table_neither_changes_a_program_nor_allows_one_that_does_more(directory: Path, program: str) -> None:
    write(directory, IPCALC.replace("ipcalc", program), f"{program}.toml")

    with pytest.raises(ConfigurationError, match=r"built-in table|always asks"):
        user_grammars(directory)


@pytest.mark.parametrize(
    "program",
    CHANGES_OR_RUNS.split(),
)
def test_no_table_of_a_user_holds_a_program_that_changes_or_runs_something(directory: Path, program: str) -> None:
    write(directory, IPCALC.replace("ipcalc", program), f"{program}.toml")

    with pytest.raises(ConfigurationError, match=r"always asks|built-in table"):
        user_grammars(directory)


@pytest.mark.parametrize(
    "program", ["ipcalc", "sipcalc", "geoiplookup", "ntptrace", "lldpctl", "snmpget", "fping", "mtr6", "vtysh", "jq"]
)
def test_a_program_that_reads_may_have_a_table(directory: Path, program: str) -> None:
    write(directory, IPCALC.replace("ipcalc", program), f"{program}.toml")

    assert set(user_grammars(directory)) == {program}


def with_variable(name: str, value: str) -> str:
    return IPCALC.replace("[examples]", f'[variables]\n{name} = "{value}"\n\n[examples]')


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_PRELOAD", "/tmp/x.so"),
        ("LD_PRELOAD", ""),
        ("PYTHONPATH", "/tmp"),
        ("PERL5OPT", "-Mx"),
        ("NODE_OPTIONS", "--require /tmp/x"),
        ("GIT_CONFIG", "/dev/null"),
        ("BASH_ENV", "/tmp/x"),
        ("ENV", "/tmp/x"),
        ("IFS", "x"),
        ("PATH", "/tmp"),
        ("HOME", "/nonexistent"),
        ("LUA_INIT", "x"),
        ("HTTPS_PROXY", "http://x"),
        ("SOME_THING", "1"),
        ("TZ", ":/tmp/x"),
        ("TZ", "/etc/shadow"),
        ("IPCALC_CONFIG", "/tmp/x"),
        ("IPCALC_CONFIG", "/nonexistent/../tmp/x"),
        ("KUBE_CONFIG", "/dev/null"),
    ],
)
def test_a_table_sets_no_variable_that_could_add_code_or_lead_elsewhere(directory: Path, name: str, value: str) -> None:
    write(directory, with_variable(name, value))

    with pytest.raises(ConfigurationError, match=f"variable {name}"):
        user_grammars(directory)


@pytest.mark.parametrize(
    ("name", "value"),
    [("LC_ALL", "C.UTF-8"), ("TZ", "Europe/Berlin"), ("NO_COLOR", "1"), ("IPCALC_CONFIG", "/nonexistent/ipcalc.conf")],
)
def test_a_table_may_set_a_language_and_switch_a_configuration_off(directory: Path, name: str, value: str) -> None:
    write(directory, with_variable(name, value))

    assert user_grammars(directory)["ipcalc"].variables == ((name, value),)


@pytest.mark.parametrize(
    "expression",
    ["(a+)+$", "(?:a*)*", "(?:a|aa)+", "(?:[a-z]+)*x", "a*a*a*a*b", "(a?){30}", "(.)\\1", "(?:(?:a{1,9}){1,9}){1,9}"],
)
@pytest.mark.parametrize("place", ["values", "operands", "forms", "pairs"])
def test_an_expression_that_backtracks_is_refused_when_its_table_is_loaded(
    directory: Path, expression: str, place: str
) -> None:
    kind = f"MATCH {expression}"
    change = {
        "values": ("[examples]", f"[values]\n'-m' = 'INT 1..3 | {kind}'\n[examples]"),
        "operands": ('"PREFIX"', f"'PREFIX', '{kind}'"),
        "forms": ("[examples]", f"[[forms]]\noperands = ['{kind}']\n[examples]"),
        "pairs": ("[examples]", f"[[forms]]\n[forms.pairs]\n'to' = '{kind} -- word'\n[examples]"),
    }[place]
    write(directory, IPCALC.replace(*change))

    with pytest.raises(ConfigurationError, match="may take long"):
        user_grammars(directory)


@pytest.mark.parametrize(
    "expression",
    [
        "[a-z]+",
        "[0-9]{1,3}(?:[.][0-9]{1,3}){3}",
        "(?:foo|bar)",
        "[a-z]{1,15}-[a-z]+",
        "v?[0-9]+",
        "(?:[a-f0-9]{2}:){5}[a-f0-9]{2}",
    ],
)
def test_an_expression_that_is_bounded_is_taken(directory: Path, expression: str) -> None:
    write(directory, IPCALC.replace("[examples]", f"[values]\n'-m' = 'MATCH {expression}'\n[examples]"))
    user_grammars(directory)

    assert decide(f"ipcalc -m {'a' * 80}! 10.0.0.0/8").classification == "RISKY"


def test_a_word_is_matched_up_to_a_length(directory: Path) -> None:
    write(directory, IPCALC.replace("[examples]", "[values]\n'-m' = 'MATCH [a-z]+'\n[examples]"))

    assert decide(f"ipcalc -m {'a' * 256} 10.0.0.0/8").classification == "SAFE"
    assert decide(f"ipcalc -m {'a' * 257} 10.0.0.0/8").rule == "ipcalc: length"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("flags", "flagz"), "unknown key 'flagz'"),
        (('"PREFIX"', '"NUMBER"'), "needs bounds"),
        (('"ipcalc -b 10', '"ipcalc -z 10'), "contradicts its example"),
        (('"ipcalc -bn 10.0.0.0/8"', ""), "needs 3 safe examples"),
        (('program = "ipcalc"', 'program = "other"'), "named after its program"),
        (('about = "computes with addresses"', ""), "has no 'about'"),
        (("clusters = true", "clusters = "), "cannot be read"),
        (("clusters = true", 'spellings = [".*"]'), "leave it out"),
        (("clusters = true", "operands_are_urls = true"), "leave it out"),
        (('flags = ["-b", "-n"]', "flags = 3"), "'flags' of a policy table is not a list"),
        (('flags = ["-b", "-n"]', 'flags = "-b -n"'), "'flags' of a policy table is not a list"),
        (('operands = ["PREFIX"]', "at_most = 3"), "'at_most' without 'operands'"),
        (('"PREFIX"', '"MATCH ("'), "cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(directory: Path, change: tuple[str, str], message: str) -> None:
    path = write(directory, IPCALC.replace(*change))

    with pytest.raises(ConfigurationError, match=message) as raised:
        user_grammars(directory)
    assert str(path) in str(raised.value)


def test_a_broken_file_makes_every_command_ask_and_say_why(directory: Path) -> None:
    write(directory, "program = ")

    decision = decide("ping -c 1 127.0.0.1")

    assert (decision.classification, decision.rule, decision.arguments) == ("RISKY", "policy: unusable", None)
    assert "ipcalc.toml" in decision.explanation
    assert decide("az vm list").rule == "policy: unusable"
    assert decide("rm -rf /").classification == "FORBIDDEN"


def test_a_broken_file_is_explained_with_its_fault_and_nobody_is_asked(directory: Path) -> None:
    path = write(directory, "program = ")

    told = explain("ping -c 1 127.0.0.1 > x")
    assert (told["classification"], told["rule"], told["safe_form"]) == ("RISKY", "pattern: redirection", None)
    told = explain("ping -c 1 127.0.0.1")
    assert (told["classification"], told["rule"], told["safe_form"]) == ("RISKY", "policy: unusable", None)
    assert str(path) in told["explanation"]
    assert "Correct the policy file" in told["fix"]
    assert told["parse"]["options"] == [{"option": "-c", "value": "1"}]
    assert decide("ping -c 1 127.0.0.1").problem is not None


def test_a_directory_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nonexistent/policy")
    grammars.cache_clear()

    told = explain("dig example.com")

    assert (told["classification"], told["rule"]) == ("RISKY", "policy: unusable")
    assert "/nonexistent/policy cannot be read" in told["explanation"]


def test_what_others_can_write_is_not_read(directory: Path) -> None:
    path = write(directory, IPCALC)
    path.chmod(0o666)
    with pytest.raises(ConfigurationError, match="others can write"):
        user_grammars(directory)

    path.chmod(0o600)
    directory.chmod(0o777)
    with pytest.raises(ConfigurationError, match="others can write"):
        user_grammars(directory)


def test_a_link_a_missing_directory_and_a_relative_path_are_refused(directory: Path) -> None:
    (directory / "link.toml").symlink_to(write(directory, IPCALC, "real.txt"))
    with pytest.raises(ConfigurationError, match="not a regular file"):
        user_grammars(directory)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        user_grammars(directory / "absent")
    with pytest.raises(ConfigurationError, match="absolute path"):
        user_grammars(Path("policy"))


@pytest.mark.parametrize("expression", ["(?<=a*)b", "(?u)ab", "[ab", "a(?P=x)"])
def test_an_expression_that_does_not_compile_refuses_every_command(directory: Path, expression: str) -> None:
    table = IPCALC.replace("at_least = 1", f'at_least = 1\nvalues = {{"-x" = "MATCH {expression} -- a b"}}')
    write(directory, table)
    assert decide("ping -c 1 127.0.0.1").rule == "policy: unusable"


@pytest.mark.skipif(this_kernel().landlock < 6, reason="the kernel has no Landlock of version 6")
@pytest.mark.needs("jq")
def test_a_users_program_runs_in_the_sandbox(directory: Path) -> None:
    write(directory, JQ, "jq.toml")
    response = SafeExecShell("s", audit_dir=directory / "audit").execute({"command": "jq -n 1", "reasoning": "to see"})
    assert (response["action"], response["output"]) == ("auto_approved", "1\n")
    assert response["sandbox"][:4] == ["no_new_privs", "capabilities", "landlock", "seccomp"]
