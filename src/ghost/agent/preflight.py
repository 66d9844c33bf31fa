"""What costs nothing to check before a command reaches the shell. A mistake goes back to the brain as advice,
without a process, a prompt, an audit record or a denial."""

from __future__ import annotations

import shlex


def preflight(command: str) -> str | None:
    """What is wrong with `command` and how to mend it; None where nothing is, or where only the shell can tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or words[0] != "az":
        return None
    query = _value_of(words, "--query")
    return _query_mistake(query) if query is not None else None


def _value_of(words: list[str], option: str) -> str | None:
    for index, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            return words[index + 1] if index + 1 < len(words) else ""
    return None


def _query_mistake(query: str) -> str | None:
    import jmespath
    from jmespath.exceptions import JMESPathError

    if not query.strip():
        return "--query has no expression: add one, or leave the option out"
    try:
        jmespath.compile(query)
    except JMESPathError as error:
        hint = "compare with == (not =), and quote text as 'text'" if "=" in query else "see jmespath.org"
        first_line = str(error).splitlines()[0] if str(error) else "not a JMESPath expression"
        return f"--query is not valid JMESPath ({first_line}): {hint}"
    return None
