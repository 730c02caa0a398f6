"""Simultaneous saves of one file in Studio: one wins and is there whole, the others are told of the conflict.

Two processes, as two servers of one directory, save with two threads each. All four texts are made of the same one.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import random
import threading
from pathlib import Path
from typing import Any

from ewan.extras.studio.server.files import Files, RefusedError, tag

TIER = "torture"
QUICK = 1
LONG = 25

NAME = "shared.lab.yaml"
SERVERS, TABS, ROUNDS = 2, 2, 20
LARGEST_BYTES = 300_000


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    before = "first"
    Files(place).write(NAME, before, None)
    for sizes in [[draw.randrange(1, LARGEST_BYTES) for _ in range(SERVERS * TABS)] for _ in range(ROUNDS)]:
        texts = [f"{number}" * size for number, size in enumerate(sizes)]
        answers = _saved_at_once(place, texts, tag(before))
        won = [number for number, conflict in answers if not conflict]
        assert len(answers) == len(texts) and len(won) == 1, answers
        before = texts[won[0]]
        assert (place / NAME).read_text() == before, "the file is not the text of the save that won"
        assert [path.name for path in place.iterdir()] == [NAME], list(place.iterdir())


def _saved_at_once(place: Path, texts: list[str], made_of: str) -> list[tuple[int, bool]]:
    """Saves all texts at the same time; returns the number of each and whether the server told of a conflict."""
    process = multiprocessing.get_context("fork")
    begin, answers = process.Barrier(len(texts)), process.SimpleQueue()
    servers = [
        process.Process(target=_serve, args=(place, list(enumerate(texts))[at::SERVERS], made_of, begin, answers))
        for at in range(SERVERS)
    ]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    return [answers.get() for _ in texts if not answers.empty()]


def _serve(
    place: Path,
    texts: list[tuple[int, str]],
    made_of: str,
    begin: multiprocessing.synchronize.Barrier,
    answers: Any,
) -> None:
    files = Files(place)

    def save(number: int, text: str) -> None:
        begin.wait()
        try:
            files.write(NAME, text, made_of)
        except RefusedError as error:
            if not error.conflict:
                raise
            answers.put((number, True))
        else:
            answers.put((number, False))

    tabs = [threading.Thread(target=save, args=each) for each in texts]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
