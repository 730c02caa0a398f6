"""WireGuard's keys: each end's private key, which anybody can compute, and the public key that belongs to it.

Comes in: the names of a lab, a tunnel and its end. Goes out: keys in hexadecimal digits. A lab's keys protect nothing:
they are the same on every machine, so that equal descriptions give equal plans.
"""

from __future__ import annotations

import hashlib

_P = 2**255 - 19
_A24 = 121_665
_BASE = 9


def pair(*names: str) -> tuple[str, str]:
    """The private and the public key of one end."""
    secret = hashlib.blake2b("/".join(("ewan", *names)).encode(), digest_size=32).digest()
    return clamped(secret).hex(), public(secret).hex()


def clamped(secret: bytes) -> bytes:
    """The 32 bytes as X25519 takes them (RFC 7748, section 5)."""
    number = int.from_bytes(secret, "little") & ~7 & (1 << 255) - 1 | 1 << 254
    return number.to_bytes(32, "little")


def public(secret: bytes) -> bytes:
    """X25519 of the base point (RFC 7748, section 5): the Montgomery ladder over the u-coordinate."""
    scalar = int.from_bytes(clamped(secret), "little")
    x2, z2, x3, z3, swapped = 1, 0, _BASE, 1, 0
    for bit in reversed(range(255)):
        here = scalar >> bit & 1
        if here != swapped:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swapped = here
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % _P, c * b % _P, a * a % _P, b * b % _P
        x3, z3 = (da + cb) ** 2 % _P, _BASE * (da - cb) ** 2 % _P
        e = aa - bb
        x2, z2 = aa * bb % _P, e * (aa + _A24 * e) % _P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, _P - 2, _P) % _P).to_bytes(32, "little")
