"""The base class of all errors that a user can put right; commands show them as one line."""

from __future__ import annotations

from collections.abc import Sequence


class UserError(Exception):
    """One line: what is wrong, where, what to write or to do instead; a command ends with exit status 2 then.
    `messages`: lines that are shown before it, of a compiler, say."""

    messages: Sequence[str] = ()
