"""SSH targets as people write them."""

from __future__ import annotations

import pytest

from ewan.extras.machines.targets import Target, target


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("node-1", Target(None, "node-1", None)),
        ("root@node-1", Target("root", "node-1", None)),
        ("root@node-1.lab.example:2222", Target("root", "node-1.lab.example", 2222)),
        ("node_1:22", Target(None, "node_1", 22)),
        ("192.0.2.1", Target(None, "192.0.2.1", None)),
        ("[2001:db8::1]:2222", Target(None, "2001:db8::1", 2222)),
        ("me@[2001:db8::1]", Target("me", "2001:db8::1", None)),
        ("2001:db8::1", Target(None, "2001:db8::1", None)),
        ("[fe80::1%eth1]:22", Target(None, "fe80::1%eth1", 22)),
        ("me@example.org@node", Target("me@example.org", "node", None)),
    ],
)
def test_forms(text: str, meant: Target) -> None:
    assert target(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@node",
        "me@",
        "node:",
        "node:0",
        "node:65536",
        "node:ssh",
        "node:٣",
        "ssh://node",
        "-oProxyCommand=x",
        "a b",
        "node;reboot",
        "-l@node",
        "[node]:22",
        "[::1",
        "[::1]x",
        "[::1]:",
        "node/x",
    ],
)
def test_what_is_no_target_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="is no SSH target: write HOST, USER@HOST"):
        target(text)


def test_a_target_is_shown_as_ssh_takes_it() -> None:
    assert str(Target("me", "node", 2222)) == "-p 2222 me@node"
    assert str(Target(None, "node", None)) == "node"
