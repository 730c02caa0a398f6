"""Credit for an experiment, the licence under which others may use it, and its citation.

In: words of the command line. Out: typed authors and licences, CITATION.cff (Citation File Format 1.2.0). A wrong word
is refused in one line. Only named persons are credited: git's user may be whoever set the machine up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from ewan.labs.runtime.base import LabError

FILE = "CITATION.cff"
UNNAMED = "anonymous"
"""The author of a CITATION.cff, which must have one, where none was named."""
_AUTHOR = re.compile(r"(?P<family>[^,<>]+),(?P<given>[^,<>]+?)(?:<(?P<orcid>[^<>]*)>)?\s*")
_ORCID = re.compile(r"(?:https://orcid\.org/)?((?:\d{4}-){3}\d{3}[\dX])")
LIKE = '"Lovelace, Ada <0000-0002-1825-0097>"'


@dataclass(frozen=True, slots=True)
class Author:
    """A person; `orcid`: the sixteen digits with hyphens, of orcid.org."""

    family: str
    given: str
    orcid: str | None = None

    @property
    def name(self) -> str:
        """The name in its usual order."""
        return f"{self.given} {self.family}"

    @property
    def url(self) -> str | None:
        """The ORCID iD in its full form."""
        return f"https://orcid.org/{self.orcid}" if self.orcid else None


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence by its SPDX identifier."""

    id: str
    name: str

    @property
    def url(self) -> str:
        """The licence's page in the SPDX License List."""
        return f"https://spdx.org/licenses/{self.id}"


DEFAULT_LICENCE = "CC-BY-4.0"
LICENCES = {
    each.id: each
    for each in (
        Licence("CC-BY-4.0", "Creative Commons Attribution 4.0 International"),
        Licence("CC-BY-SA-4.0", "Creative Commons Attribution Share Alike 4.0 International"),
        Licence("CC-BY-NC-4.0", "Creative Commons Attribution Non Commercial 4.0 International"),
        Licence("CC-BY-ND-4.0", "Creative Commons Attribution No Derivatives 4.0 International"),
        Licence("CC-BY-NC-SA-4.0", "Creative Commons Attribution Non Commercial Share Alike 4.0 International"),
        Licence("CC-BY-NC-ND-4.0", "Creative Commons Attribution Non Commercial No Derivatives 4.0 International"),
        Licence("CC0-1.0", "Creative Commons Zero v1.0 Universal"),
        Licence("ODC-By-1.0", "Open Data Commons Attribution License v1.0"),
        Licence("ODbL-1.0", "Open Data Commons Open Database License v1.0"),
        Licence("PDDL-1.0", "Open Data Commons Public Domain Dedication & License 1.0"),
        Licence("Apache-2.0", "Apache License 2.0"),
        Licence("BSD-3-Clause", 'BSD 3-Clause "New" or "Revised" License'),
        Licence("MIT", "MIT License"),
        Licence("GPL-3.0-or-later", "GNU General Public License v3.0 or later"),
    )
}
"""Licences of the SPDX License List that data and scenarios are published under."""


def licence(word: str) -> Licence:
    """The licence of this SPDX identifier, in any case; LabError names those that are known."""
    for known in LICENCES.values():
        if known.id.lower() == word.strip().lower():
            return known
    raise LabError(f'--licence "{word}": is none of those known here: write one of {", ".join(LICENCES)}')


def author(words: str) -> Author:
    """`Family, Given <ORCID iD>`, the last of which may be left out; LabError for other words."""
    found = _AUTHOR.fullmatch(words)
    if found is None or not found["family"].strip() or not found["given"].strip():
        raise LabError(f'--author "{words}": write the family name first, like {LIKE}')
    orcid = None
    if found["orcid"] is not None:
        digits = _ORCID.fullmatch(found["orcid"].strip())
        if digits is None or _check_digit(digits[1]) != digits[1][-1]:
            raise LabError(f'--author "{words}": "{found["orcid"]}" is no ORCID iD: write {LIKE}, or leave it out')
        orcid = digits[1]
    return Author(found["family"].strip(), found["given"].strip(), orcid)


def _check_digit(orcid: str) -> str:
    """The check digit of the fifteen digits before it: ISO/IEC 7064, MOD 11-2."""
    total = 0
    for digit in orcid.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    rest = (12 - total % 11) % 11
    return "X" if rest == 10 else str(rest)


def cff(title: str, about: str, released: str, authors: Sequence[Author], terms: Licence) -> str:
    """CITATION.cff of an experiment; `released`: the day, as YYYY-MM-DD."""
    people = [
        {
            "family-names": each.family,
            "given-names": each.given,
            **({"orcid": each.url} if each.url else {}),
        }
        for each in authors
    ]
    document = {
        "cff-version": "1.2.0",
        "message": "If you use these measurements, please cite them as below.",
        "type": "dataset",
        "title": title,
        **({"abstract": about.strip()} if about.strip() else {}),
        "authors": people or [{"name": UNNAMED}],
        "date-released": released,
        "license": terms.id,
        "keywords": ["network emulation", "measurement", "ewan"],
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    note = "" if authors else "# No author was named with --author when this was archived: write the authors here.\n"
    return note + text
