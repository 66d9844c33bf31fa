"""When a change was made, as the words that tell of it say: `yesterday at 14:00`, `on Tuesday`, `two hours ago`.

Times of day are UTC, as everywhere in Ghost. Of a span, such as a day, the end counts: a change is rather shown too
long than missed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_FLAGS: Final = re.IGNORECASE | re.ASCII
"""ASCII: else `frıday` and `ſunday` match, and are no key of a table here."""
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY: Final = rf"(?<![\w-])(?:{'|'.join(_WEEKDAYS)})(?![\w-])"
_NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_UNITS: Final = {"min": "minutes", "minute": "minutes", "hour": "hours", "day": "days", "week": "weeks"}
_ENDS: Final = {"morning": 12, "noon": 12, "afternoon": 18, "evening": 24, "night": 24}
"""Hours at which parts of the day end."""
_WHOLE_DAY: Final = timedelta(hours=23, minutes=59)
_TO_COME: Final = re.compile(
    rf"\b(?:will|shall|going to|tomorrow|tonight|next (?:week|month|{_WEEKDAY})|from {_WEEKDAY} on)\b", _FLAGS
)
_AGO: Final = re.compile(
    rf"\b(?P<number>\d{{1,3}}|an?|half an|{'|'.join(_NUMBERS)}) (?P<unit>{'|'.join(_UNITS)})s? ago\b", _FLAGS
)
_DATE: Final = re.compile(r"(?<![\w-])(?P<date>\d{4}-\d{2}-\d{2})(?:[t ](?P<clock>\d{2}:\d{2}))?(?![\d-])", _FLAGS)
_DAY: Final = re.compile(
    rf"\b(?P<last>last )?(?P<day>today|this|yesterday|night|week|month|{_WEEKDAY})\b"
    rf"(?: (?P<part>{'|'.join(_ENDS)})\b)?",
    _FLAGS,
)
_CLOCK: Final = re.compile(
    r"(?<![\w.:/-])(?P<hour>\d{1,2})"
    r"(?::(?P<minute>[0-5]\d)(?::\d{2})?z?(?: ?(?P<half>[ap]m))?| ?(?P<hours>[ap]m))(?![\w:/])",
    _FLAGS,
)


def moment_told(text: str, told_at: float) -> float | None:
    """Return when the change was made that a text told at `told_at` (both epoch seconds); None if it says no time, or
    one to come.
    """
    if _TO_COME.search(text):
        return None
    now = datetime.fromtimestamp(told_at, UTC)
    if ago := _AGO.search(text):
        return (now - _span(ago["number"].lower(), _UNITS[ago["unit"].lower()])).timestamp()
    ends = _dated(text) or _day_ends(text, now)
    clock = _clock(text)
    if clock is None:
        return None if ends is None else min(ends, now).timestamp()
    moment = (ends or now).replace(hour=0, minute=0, second=0, microsecond=0) + clock
    if moment > now and (_dated(text) or "today" in text.lower()):
        return None
    if moment > now:  # the weekday of the week before, or the evening before
        moment -= timedelta(days=7 if re.search(_WEEKDAY, text, _FLAGS) else 1)
    return moment.timestamp()


def _span(number: str, unit: str) -> timedelta:
    amount = 0.5 if number == "half an" else _NUMBERS.get(number) or (int(number) if number.isdigit() else 1)
    return timedelta(**{unit: amount})


def _dated(text: str) -> datetime | None:
    """Return the end of the date that is written out."""
    if found := _DATE.search(text):
        try:
            return datetime.fromisoformat(found["date"]).replace(tzinfo=UTC) + _WHOLE_DAY
        except ValueError:
            return None
    return None


def _day_ends(text: str, now: datetime) -> datetime | None:
    """Return the end of the day, of its part, or of the week or month before."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for found in _DAY.finditer(text):
        last, day, part = found["last"], found["day"].lower(), found["part"]
        if day in ("night", "week", "month"):
            if last:
                ends = {"night": 0.25, "week": -now.weekday(), "month": 1 - now.day}
                return midnight + timedelta(days=ends[day], minutes=-1)
        elif day != "this" or part:
            back = {"today": 0, "this": 0, "yesterday": 1}.get(day)
            if back is None:
                back = (now.weekday() - _WEEKDAYS.index(day)) % 7 or (7 if last else 0)
            ends_after = timedelta(hours=_ENDS[part.lower()], minutes=-1) if part else _WHOLE_DAY
            return midnight - timedelta(days=back) + ends_after
    return None


def _clock(text: str) -> timedelta | None:
    """Return the time of day."""
    if (dated := _DATE.search(text)) and dated["clock"]:
        hour, minute = map(int, dated["clock"].split(":"))
    elif found := _CLOCK.search(text):
        half = (found["half"] or found["hours"] or "").lower()
        hour, minute = int(found["hour"]), int(found["minute"] or 0)
        hour = hour % 12 + 12 * (half == "pm") if half else hour
    else:
        return None
    return timedelta(hours=hour, minutes=minute) if hour < 24 else None
