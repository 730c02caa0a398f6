"""A program behind the wall that makes random system calls: `python hostile.py SEED COUNT VICTIM PATH...`.

In: paths outside and inside of the wall, and a process outside. Out: how many calls were made, and how many of them
were not refused. The arguments are paths, descriptors, flags, addresses of memory of its own and small numbers.
"""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import sys

LAST_CALL = 470
LEFT_OUT = """
0 7 10 11 12 13 14 15 23 25 28 33 34 35 56 57 58 59 60 61 62 73 127 128 130 131 157 158 162 200 202 207 208 218 219 230
231 232 234 240 241 242 243 247 270 271 273 281 306 317 322 329 334 424 435 441 449 453 454 455 462
"""
"""What would end this program, have it or the disk wait, or make a second one of it: sleep, fork, exec, kill, sync."""
REACHES_OUT = """
2 16 21 53 76 82 83 84 85 86 87 88 90 92 94 101 132 133 155 161 165 188 203 235
"""
"""With a path first, as a rule: open, rename, link, chmod, chown, mount, ptrace, limits, memory of others."""
REACHES_OUT_AT = """
257 258 259 260 261 263 264 265 266 268 272 280 302 304 308 310 311 316 425 428 429 434 437 438 452
"""
"""With a directory first, as a rule: openat, renameat, linkat, fchmodat, utimensat, name_to_handle_at, open_tree."""


def main(seed: int, count: int, victim: int, paths: list[bytes]) -> None:
    """`count` calls; each is over after a second at most."""
    draw, libc = random.Random(seed), ctypes.CDLL(None, use_errno=True)
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        resource.setrlimit(limit, (1 << 24, 1 << 24) if limit == resource.RLIMIT_FSIZE else (5, 5))
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(number, lambda *_: None)
    memory = ctypes.create_string_buffer(draw.randbytes(4096), 4096)
    words = [ctypes.create_string_buffer(path) for path in paths]
    left_out, first, at = ({int(word) for word in text.split()} for text in (LEFT_OUT, REACHES_OUT, REACHES_OUT_AT))
    pools = [sorted(set(range(LAST_CALL)) - left_out), sorted(first), sorted(at)]
    went_through = 0
    for _ in range(count):
        number = draw.choice(draw.choice(pools))
        arguments = [_argument(draw, words, memory, victim) for _ in range(6)]
        if number in at and draw.random() < 0.7:
            arguments[0], arguments[1] = ctypes.c_long(-100), ctypes.cast(draw.choice(words), ctypes.c_void_p)
        elif number in first and draw.random() < 0.7:
            arguments[0] = ctypes.cast(draw.choice(words), ctypes.c_void_p)
        signal.setitimer(signal.ITIMER_REAL, 1)
        went_through += libc.syscall(ctypes.c_long(number), *arguments) >= 0
    print(count, went_through)


def _argument(draw: random.Random, words: list[ctypes.Array[ctypes.c_char]], memory: object, victim: int) -> object:
    match draw.randrange(7):
        case 0 | 1:
            return ctypes.cast(draw.choice(words), ctypes.c_void_p)
        case 2:
            return ctypes.cast(memory, ctypes.c_void_p)  # type: ignore[arg-type]
        case 3:
            return ctypes.c_long(victim)
        case 4:
            return ctypes.c_long(1 << draw.randrange(32))
        case 5:
            return ctypes.c_long(draw.choice((-100, -1, 0, 0o102, 0o1101, 0o777, 0o4755, os.O_TRUNC)))
        case _:
            return ctypes.c_long(draw.randrange(64))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), [os.fsencode(path) for path in sys.argv[4:]])
