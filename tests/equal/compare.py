"""Two folders of results are compared file by file: what differs is told, with the first place where it does."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from tests.equal.allowed import FILES, LEAVES, LEFT_OUT, PATTERNS, SORTED_NOW

COMPILED = [(re.compile(pattern, re.MULTILINE), put) for pattern, put, _ in PATTERNS]
LINES = 6
"""Of a text's differences so many lines are shown."""


_HASH = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{12})(?![0-9a-f])")


def normal(text: str, known: Mapping[str, str] | None = None) -> str:
    of_plans = {} if known is None else known
    text = _HASH.sub(lambda found: of_plans.get(found[0], found[0]), text)
    for value, name in of_plans.items():
        if not _HASH.fullmatch(value):
            text = text.replace(value, name)
    for pattern, put in COMPILED:
        text = pattern.sub(put, text)
    return text


def plans(root: Path) -> dict[str, str]:
    """The hashes by which documents name a plan and its family, whole and their first twelve digits, and what replaces
    them: a hash of the same plan with its keys sorted."""
    found: dict[str, str] = {}
    for path in root.rglob("*plan.json"):
        text = path.read_bytes()
        for what, content in (("PLAN", text), ("FAMILY", _SEED.sub(b'"seed": 0', text))):
            data = json.loads(content)
            own = content if what == "PLAN" else orjson.dumps(data)
            sorted_hash = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]
            digest = hashlib.sha256(own).hexdigest()
            found |= {digest: f"{what} {sorted_hash}", digest[:12]: f"{what} {sorted_hash}"}
    return found


_SEED = re.compile(rb'"seed": [^,\n]+')


def versions(root: Path) -> dict[str, str]:
    """The hashes by which documents name a checkout, its node binary and its kernel, and what replaces them."""
    own = {str(root.resolve()): "OUT", **plans(root)}
    for path in root.glob("work/results/*/experiment.json"):
        document = json.loads(path.read_text())
        commit = str(document["commit"])
        found = {document[key]: key for key in ("binary_sha256", "kernel_sha256") if key in document}
        return {commit: "COMMIT", commit.removesuffix("-dirty"): "COMMIT", **own, **found}
    return own


def files(root: Path, known: Mapping[str, str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*")):
        name = normal(str(path.relative_to(root)), known)
        if path.is_file() and not any(fnmatch(name, pattern) for pattern in FILES):
            found[name] = path
    return found


def compare(before: Path, after: Path) -> int:
    """How many files differ; each is told in a few lines. Where a folder stands is not compared."""
    differing = 0
    known = versions(before), versions(after)
    first, second = files(before, known[0]), files(after, known[1])
    for name in sorted({*first, *second}):
        if name not in second or name not in first:
            differing += 1
            print(f"{name}: only {'before' if name in first else 'after'}")
        elif told := list(differences(first[name], second[name], *known)):
            differing += 1
            print(f"{name}:")
            for line in told[:LINES]:
                print(f"    {line[:300]}")
    print(f"{len(first)} files before, {len(second)} after, {differing} differ")
    return differing


def differences(before: Path, after: Path, of_before: Mapping[str, str], of_after: Mapping[str, str]) -> Iterator[str]:
    one, two = (_unpacked(path) for path in (before, after))
    if one == two:
        return
    if before.suffix == ".parquet":
        same = pl.read_parquet(before).equals(pl.read_parquet(after), null_equal=True)
        yield "the rows differ" if not same else "other bytes for the same rows"
        return
    try:
        left, right = normal(one.decode(), of_before), normal(two.decode(), of_after)
    except UnicodeDecodeError:
        yield "binary files differ"
        return
    if left == right:
        return
    if left.startswith("{") and right.startswith("{"):
        documents = json.loads(left), json.loads(right)
        found = list(leaves(*documents, before.name))
        other_bytes = documents[0] == documents[1] and not SORTED_NOW.search(before.name)
        yield from found or (["other bytes for the same document"] if other_bytes else [])
        return
    lines = difflib.unified_diff(left.splitlines(), right.splitlines(), lineterm="", n=0)
    yield from (line for line in lines if not line.startswith(("---", "+++", "@@")))


_WRITER = re.compile(rb"ewan-node \d+\.\d+\.\d+")


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".pcapng":
        return _WRITER.sub(b"ewan-node VERSION", content, count=1)
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _is_left_out(place: str, value: object) -> bool:
    return any(fnmatch(place, pattern) and value == default for pattern, default in LEFT_OUT.items())


def leaves(one: Any, two: Any, place: str) -> Iterator[str]:
    if type(one) is not type(two):
        yield f"{place}: {str(one)[:80]} → {str(two)[:80]}"
    elif isinstance(one, dict):
        if list(one) != list(two) and sorted(one) == sorted(two) and not SORTED_NOW.search(place):
            yield f"{place}: keys in another order"
        for key in sorted({*one, *two}):
            if any(fnmatch(f"{place}.{key}", pattern) for pattern in LEAVES):
                continue
            if key in one and key not in two and _is_left_out(f"{place}.{key}", one[key]):
                continue
            if key not in one or key not in two:
                yield f"{place}.{key}: only {'before' if key in one else 'after'}"
            else:
                yield from leaves(one[key], two[key], f"{place}.{key}")
    elif isinstance(one, list):
        if len(one) != len(two):
            yield f"{place}: {len(one)} items → {len(two)}"
        for number, (left, right) in enumerate(zip(one, two, strict=False)):
            yield from leaves(left, right, f"{place}[{number}]")
    elif one != two:
        yield f"{place}: {str(one)[:120]} → {str(two)[:120]}"
