"""SSH targets as people write them."""

from __future__ import annotations

import pytest

from ewan.extras.machines.targets import SshTarget, target


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("node-1", SshTarget(None, "node-1", None)),
        ("root@node-1", SshTarget("root", "node-1", None)),
        ("root@node-1.lab.example:2222", SshTarget("root", "node-1.lab.example", 2222)),
        ("node_1:22", SshTarget(None, "node_1", 22)),
        ("192.0.2.1", SshTarget(None, "192.0.2.1", None)),
        ("[2001:db8::1]:2222", SshTarget(None, "2001:db8::1", 2222)),
        ("me@[2001:db8::1]", SshTarget("me", "2001:db8::1", None)),
        ("2001:db8::1", SshTarget(None, "2001:db8::1", None)),
        ("[fe80::1%eth1]:22", SshTarget(None, "fe80::1%eth1", 22)),
        ("me@example.org@node", SshTarget("me@example.org", "node", None)),
    ],
)
def test_forms(text: str, meant: SshTarget) -> None:
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
    assert str(SshTarget("me", "node", 2222)) == "-p 2222 me@node"
    assert str(SshTarget(None, "node", None)) == "node"
