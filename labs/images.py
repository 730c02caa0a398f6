"""Names of the container images that nodes are made of: what `make images` builds and a containerlab file refers to.

In: a node's kind, as a plan has it. Out: an image's name with its tag, and the label by which an image tells which
ewan-node is inside. Pure: nothing here asks an engine.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ewan import __version__
from ewan.labs.base.product import from_source

# A new version takes new names, so that old labs keep their images.
TAG = __version__

REPOSITORY = "ewan"
KINDS = ("host", "router", "switch", "emulator")
# Built on demand only: what a lab needs beside its nodes.
EXTRAS = ("prometheus",)
IMAGES = {kind: f"{REPOSITORY}/{kind}:{TAG}" for kind in (*KINDS, *EXTRAS)}

# Labels of an image: SHA-256 of the ewan-node inside (hex), the product's version, the hash of its Debian packages.
NODE_LABEL = "ewan.node"
VERSION_LABEL = "ewan.version"
PACKAGES_LABEL = "ewan.packages"

REMEDY = "make images"


def image(kind: str) -> str:
    """The image of nodes of a kind, "ewan/router:0.3.0". Raises KeyError for a kind that has none."""
    return IMAGES[kind]


def digest(binary: Path) -> str:
    """SHA-256 of an ewan-node binary, as the label of an image has it. Raises OSError where it cannot be read."""
    with binary.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def complaint(name: str, labels: dict[str, str] | None, binary_digest: str) -> str:
    """The fault of an image, as one line with its remedy; "" if it can be used.

    `labels`: those of the engine's image, None if it has none of that name; `binary_digest`: of the ewan-node in use.
    """
    remedy = from_source(" ".join([REMEDY, *(f"KIND={kind}" for kind in EXTRAS if IMAGES[kind] == name)]))
    if labels is None:
        return f"image {name} is not there: {remedy}"
    inside = labels.get(NODE_LABEL)
    if inside is None:
        return f"image {name} is not one of ours (no label {NODE_LABEL}): {remedy}"
    if inside != binary_digest:
        return f"image {name} is of another version (ewan-node {inside[:12]}, here {binary_digest[:12]}): {remedy}"
    return ""
