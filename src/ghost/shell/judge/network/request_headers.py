"""Request headers: whether a value has the form of its header (`policy/request_headers.toml`).

A server is told every word of a header, so free text in one is data on its way out. A user agent is products with
versions and comments of ordinary words (RFC 9110, 10.1.5); what else may be sent has a form of its own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.judge.az.jmespath_queries import secret_field
from ghost.shell.judge.network.exfiltration import fault_of_name
from ghost.shell.policy_tables import policy_table

_COMMENT = lazy(r"\(([^()]*)\)")
_HOST_OF_URL = lazy(r"https?://([A-Za-z0-9._-]+)")
_WORD = lazy(r"[A-Za-z]\w*")


class _Forms(NamedTuple):
    headers: dict[str, re.Pattern[str]]
    product: re.Pattern[str]
    word_of_comment: re.Pattern[str]
    longest: int
    most_products: int
    most_without_version: int
    most_comments: int
    most_words: int


@cache
def _forms() -> _Forms:
    table = policy_table("request_headers.toml")
    agent = table["user_agent"]
    return _Forms(
        **{
            **agent,
            "headers": {
                name: lazy(form, re.ASCII | re.IGNORECASE)
                for names, form in table["forms"].items()
                for name in names.split()
            },
            "product": lazy(agent["product"], re.ASCII),
            "word_of_comment": lazy(agent["word_of_comment"], re.ASCII),
        }
    )


def fault_of_form(header: str, value: str) -> str | None:
    """Why this is no value of the header, named in small letters; None for a header without a form of its own."""
    if header == "user-agent":
        return fault_of_user_agent(value)
    form = _forms().headers.get(header)
    if form is None:
        return None
    if not form.fullmatch(value):
        return f"is not in a known form of {header}, and it is sent to the server"
    return _fault_of_words(value) if "=" in value else _fault_of_hosts(value)


def fault_of_user_agent(value: str) -> str | None:
    """Why this is not a user agent made of products and comments."""
    forms = _forms()
    comments = _COMMENT.findall(value)
    products = _COMMENT.sub(" ", value).split()
    words = [word for comment in comments for word in re.split(r"[ ;,]+", comment) if word]
    if (
        len(value) > forms.longest
        or not re.match(r"[A-Za-z]", value)
        or len(products) > forms.most_products
        or len(comments) > forms.most_comments
        or len(words) > forms.most_words
        or not all(map(forms.product.fullmatch, products))
        or sum("/" not in product for product in products) > forms.most_without_version
        or not all(map(forms.word_of_comment.fullmatch, words))
    ):
        return "is not a user agent of products with versions and short comments, and it is sent to the server"
    return _fault_of_words(value) or _fault_of_hosts(value)


def _fault_of_words(value: str) -> str | None:
    secret = next(filter(None, map(secret_field, _WORD.findall(value))), None)
    return f"holds {secret}, which is named like a secret, and it is sent to the server" if secret else None


def _fault_of_hosts(value: str) -> str | None:
    return next(filter(None, map(fault_of_name, _HOST_OF_URL.findall(value))), None)
