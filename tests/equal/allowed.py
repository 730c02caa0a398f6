"""What two checkouts may write differently, and why. All else must be equal to the byte.

Some of it differs between two runs of one checkout, too: times of the wall clock, and what this machine did meanwhile.
"""

from __future__ import annotations

import re

_TIME = r"[\d.,]+ ?(?:ns|us|µs|ms|s|min|h)"

PATTERNS: list[tuple[str, str, str]] = [
    # pattern in a text, what stands in its place, why
    (r"\b0\.\d+\.\d+\b(?!\.)", "VERSION", "the version of ewan is in what it writes"),
    (r"\d{8}T\d{6}Z", "TIME", "when an experiment began is in its name"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", "TIME", "when something was done"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?", "TIME", "when something was done"),
    (rf"\({_TIME}\)$", "(DURATION)", "how long a stage took"),
    (r", [\d.]+ ?[kM]?B \(DURATION\)$", ", SIZE (DURATION)", "how large an archive is, which has durations in it"),
    (rf"in {_TIME} of wall time (\(.* nodes), [\d,]+ a second\)", r"in DURATION of wall time \1)", "how fast it was"),
    (rf"its runs take about {_TIME} ± \d+ % of wall time", "its runs take about DURATION of wall time", "an estimate"),
    (rf"which saves {_TIME} of work", "which saves DURATION of work", "how long it took before"),
    (r"complete, [\d.]+\ss</dd>", "complete, DURATION</dd>", "how long a stage took"),
    (r"^.*(?:verifying \w+: .* in | runs have ended).*\n", "", "progress, every five seconds"),
    (r"^warning: links of live labs spin on CPU .*\n", "", "another lab was up on this machine"),
    (r"^# archive: (\S+) [0-9a-f]{64}$", r"# archive: \1 SHA256", "an archive has durations in it"),
    (r", (?:with changes|which had changes) beyond it", "", "a checkout may have changes that are not committed"),
    (
        r"^(ewan: [^ ]+: ).*(, or emulator: user)$",
        r"\1REFUSAL\2",
        "which of several keys that netem lacks is refused first",
    ),
    (r"(spdxdocs/ewan-\w+-)[0-9a-f]{64}", r"\1SHA256", "names an experiment that has durations in it"),
    (r"^((?:Published |.*doi:.*)?)[0-9a-f]{64}  ", r"\1SHA256  ", "of files that are compared themselves"),
]

LEAVES: dict[str, str] = {
    # places in JSON documents, as patterns, whose values are not compared
    "experiment.json.stages.*.seconds": "how long a stage took",
    "experiment.json.runs*.key": "key of the store: hashes of sources and binaries are in it",
    "experiment.json.files.certificates/*": "hash of what is compared itself: the plan's hash is in it",
    "experiment.json.files.*program.json": "hash of what is compared itself",
    "experiment.json.files.*.pcapng": "hash of what is compared itself: the version of ewan is in it",
    "experiment.json.files.*request.json": "hash of what is compared itself",
    "experiment.json.files.settings.json": "its hash: where the scenario stands is in it",
    "experiment.json.files.*wall.json": "hash of what is not compared",
    "*.flows*.socket.[demnrsw]*": "transfers name all options, as scenarios do, whose programs' hashes are compared",
    "*.flows*.work.b*": "the same: `bidirectional`, and `bytes` where a time ends it",
    "*.sample_ns": "the same of verifications, which say that there is none for all flows",
    "course.json.last_check": "hash of a time",
    "*.flent.gz.raw_values.*.t": "seconds since 1970",
    "ro-crate-metadata.json.@graph*.sha256": "of files that are compared themselves",
    "ro-crate-metadata.json.@graph*.contentSize": "of files that are compared themselves",
    "sbom.spdx.json.*Checksum*": "of files that are compared themselves",
}

FILES: dict[str, str] = {
    # files, as patterns of their paths, that are not compared
    "*/wall.json": "what the machine did meanwhile",
    "store/*": "entries have the machine's work in them; `store verify` reads them, and runs are compared in results",
    "*.tar.zst": "of files that are compared themselves",
    "state/*": "locks of this machine",
    "*/figures/asked.json": "figures that were asked for are kept since the first comparison was made",
}

SORTED_NOW = re.compile(
    r"^[^ ]*(?:plan|program)\.json|^experiment\.json\.files$|^\w+\.json\..*\.uncertainty\.components$"
)
"""Documents whose keys are sorted since the codec writes them; the hashes that name plans, and files of certificates,
are others."""

LEFT_OUT: dict[str, object] = {
    # places, as patterns, that only the first side has, with the value that they have there: it is the default
    "program.json.probe": None,
    "program.json.commands": [],
    "program.json.commands*.at_ns": 0,
    "program.json.commands*.service": False,
    "program.json.longest_ns": 0,
    "experiment.json.compare": [],
    "*.series_ns": 0,
    "*.flows*.start_ns": 0,
    "*.flows*.stop_ns": None,
    "*.flows*.work.on_ns": None,
    "*.flows*.work.off_ns": None,
    "*.flows*.work.ranks": [],
    "*.flows*.work.new_connection": False,
    "*.flows*.socket.congestion": None,
}
"""A key that has its default is left out since the codec writes documents."""
