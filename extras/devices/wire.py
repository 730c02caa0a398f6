"""The words of a box with a command line, as a table in a file has them (gtrcnet.toml): templates of lines. Pure.

In: the file's text. Out: a `BoxVocabulary`; lines to send, and what is in lines that came, for driver and simulated box
alike.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEYS = ("rate_bps", "delay_ns", "loss_ppb")
"""The settings of a direction that such a box has."""
_PLACES = {
    "channel": r"\S+",
    "value": r"[0-9]{1,18}",
    "since": r"[0-9]{1,18}",
    "first": r"[0-9]{1,18}",
    "rows": r"[0-9]{1,6}",
    "values": r"(?: [0-9]{1,18})*",
    "model": r"\S+",
    "any": r".*",
}


@dataclass(frozen=True, slots=True)
class Template:
    """A line with places."""

    text: str

    def filled(self, **values: object) -> str:
        """The line with values in its places."""
        return re.sub(r"\{(\w+)\}", lambda place: str(values[place[1]]), self.text)

    def read(self, line: str) -> Mapping[str, str] | None:
        """The values in the places of a line; None for a line of another form."""
        parts = re.split(r"\{(\w+)\}", self.text)
        seen: set[str] = set()
        pattern = ""
        for number, part in enumerate(parts):
            if number % 2 == 0:
                pattern += re.escape(part)
            else:
                pattern += f"(?P={part})" if part in seen else f"(?P<{part}>{_PLACES[part]})"
                seen.add(part)
        found = re.fullmatch(pattern, line.strip())
        return None if found is None else found.groupdict()


@dataclass(frozen=True, slots=True)
class BoxExchange:
    """A command and its answer."""

    command: Template
    answer: Template


@dataclass(frozen=True, slots=True)
class BoxVocabulary:
    """All words of a box; `units` by key of a setting; `rows`: of one answer of the monitor at most."""

    baud: int
    ends_with: str
    refusal: Template
    answers_within_s: float
    channels: Mapping[str, str]
    identify: BoxExchange
    models: Mapping[str, str]
    reset: BoxExchange
    set: Mapping[str, BoxExchange]
    get: Mapping[str, BoxExchange]
    units: Mapping[str, int]
    monitor: BoxExchange
    rows: int


def read(text: str, where: str) -> BoxVocabulary:
    """The table in a file's text; ValueError, one line, for another text."""
    try:
        data = tomllib.loads(text)
        line, sets, monitor = data["line"], data["set"], data["monitor"]
        table = BoxVocabulary(
            baud=_number(line["baud"]),
            ends_with=_text(line["ends_with"]),
            refusal=_template(line["refusal"], "any"),
            answers_within_s=float(line["answers_within_s"]),
            channels={heading: _text(data["channels"][heading]) for heading in ("forward", "backward")},
            identify=BoxExchange(
                _template(data["identify"]["command"]), _template(data["identify"]["answer"], "model", "any")
            ),
            models={str(name): _text(word) for name, word in data["models"].items()},
            reset=BoxExchange(_template(data["reset"]["command"]), _template(data["reset"]["answer"])),
            set={key: BoxExchange(_template(sets[key], "channel", "value"), _template(sets["answer"])) for key in KEYS},
            get={
                key: BoxExchange(
                    _template(data["get"][key][0], "channel"), _template(data["get"][key][1], "channel", "value")
                )
                for key in KEYS
            },
            units={key: _number(data["units"][key]) for key in KEYS},
            monitor=BoxExchange(
                _template(monitor["command"], "channel", "since", "rows"),
                _template(monitor["answer"], "channel", "first", "values"),
            ),
            rows=_number(monitor["rows"]),
        )
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: is no TOML: {error}") from None
    except KeyError as error:
        raise ValueError(f"{where}: lacks {error.args[0]}: see extras/devices/gtrcnet.toml") from None
    except (TypeError, IndexError, ValueError, AttributeError) as error:
        raise ValueError(f"{where}: {error}: see extras/devices/gtrcnet.toml") from None
    return table


def _template(value: Any, *places: str) -> Template:
    text = _text(value)
    found = re.findall(r"\{(\w+)\}", text)
    if unknown := sorted(set(found) - set(_PLACES)):
        raise ValueError(f'"{text}" has an unknown place {unknown[0]}')
    if missing := [place for place in places if place not in found and place != "any"]:
        raise ValueError(f'"{text}" has no place {missing[0]}')
    return Template(text)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r} is no whole number from 1 on")
    return value
