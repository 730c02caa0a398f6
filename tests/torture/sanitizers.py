"""Rust's tests under AddressSanitizer: no byte is read or written outside of what was allocated, or after it was freed.

By hand only: all of it is compiled once more, which takes minutes the first time. The properties among the tests draw
from the trial's seed. Slots within the emulator's mappings (its arena and rings) are told to the sanitizer one by one
(emulator/datapath/src/memory.rs), and tests that are compiled for it alone make such faults and see them reported.

The sanitizer is no part of a stable compiler's options. RUSTC_BOOTSTRAP=1 lets the compiler that builds the product
take it, so that what is tested is what that compiler makes.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conftest import ROOT

TIER = "live"
QUICK = 0
LONG = 10

FLAGS = ("-Zsanitizer=address", "-Ctarget-feature=-crt-static", "--cfg=address_sanitizer")
"""Instead of those of .cargo/config.toml: the sanitizer's runtime is none for static programs."""
COMMAND = ("cargo", "test", "--profile", "checked", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests")
WATCHES = "sanitizer_tests::what_must_not_be_read_is_reported"


def environment() -> dict[str, str]:
    """Of `COMMAND`; objects lie apart from those of other builds."""
    host = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    triple = next(line.removeprefix("host: ") for line in host.splitlines() if line.startswith("host: "))
    return {
        **os.environ,
        "RUSTC_BOOTSTRAP": "1",
        "RUSTFLAGS": " ".join(FLAGS),
        "CARGO_PROFILE_CHECKED_DEBUG": "1",  # a report names lines
        # Named, or the flags would reach the procedural macros too.
        "CARGO_BUILD_TARGET": triple,
        "CARGO_TARGET_DIR": str(ROOT / "target/address-sanitizer"),
    }


def trial(seed: int, place: Path) -> None:
    variables = {**environment(), "PROPTEST_RNG_SEED": str(seed)}
    done = subprocess.run(COMMAND, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert f"test {WATCHES} ... ok" in done.stdout, f"the sanitizer was not seen to watch: {done.stdout[-2000:]}"
    assert done.returncode == 0, done.stdout[-5000:]
