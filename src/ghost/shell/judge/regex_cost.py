"""Upper bound of the backtracking of a regular expression on one word, computed without matching.

`re` backtracks: `(a+)+$` takes twice as long for each further letter. The count here is of the ways to divide the word
among the repeats, never too low, so an expression with a small count is fast whatever the word.
"""

from __future__ import annotations

import importlib
from typing import Any

_parser: Any = importlib.import_module("re._parser")  # the expression taken apart; `re` itself reads it so
_TOO_MANY = 10**12


def most_ways(expression: str, longest_word: int) -> int:
    """An upper bound of the ways, itself at most 10**12. Raises `re.error` for what is no expression."""
    return _of_sequence(_parser.parse(expression), longest_word)


def _of_sequence(items: Any, longest: int) -> int:
    ways = 1
    for operation, argument in items:
        ways = min(ways * _of_item(str(operation), argument, longest), _TOO_MANY)
    return ways


def _of_item(operation: str, argument: Any, longest: int) -> int:
    match operation:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, body = int(argument[0]), min(int(argument[1]), longest), argument[2]
            inside = _of_sequence(body, longest)
            if inside > 1:
                return min(int(inside ** min(high + 1, 64)), _TOO_MANY)
            return 1 if operation == "POSSESSIVE_REPEAT" else max(high - low + 1, 1)
        case "SUBPATTERN" | "ASSERT" | "ASSERT_NOT":
            return _of_sequence(argument[-1], longest)
        case "ATOMIC_GROUP":
            return _of_sequence(argument, longest)
        case "BRANCH":
            return min(sum(_of_sequence(branch, longest) for branch in argument[1]), _TOO_MANY)
        case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY" | "AT" | "RANGE" | "CATEGORY" | "NEGATE":
            return 1
        case _:  # a reference to a group, a condition: not counted, so not known
            return _TOO_MANY
