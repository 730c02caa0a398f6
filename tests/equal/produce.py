"""The commands of a checkout work on a corpus, one after the other, and what they say and write is kept.

Each `compile` writes to a folder of its own. All others work in one folder, in the corpus's order: later ones read
what earlier ones made. Nothing outside of the folder is written: store and state are in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PER_COMMAND_S = 900


def produce(checkout: Path, corpus: Path, out: Path, only: str = "") -> None:
    """`only`: "compile" or "then" for one half of the commands."""
    work = out / "work"
    shutil.copytree(corpus, work)
    (out / "said").mkdir()
    commands = json.loads((corpus / "commands.json").read_text())
    if only != "then":
        compiles = [[*words, "-o", f"compiled/{number:03}"] for number, words in enumerate(commands["compile"])]
        compiles_of_scripts = [["import", f"scripts/{file.name}"] for file in sorted((corpus / "scripts").iterdir())]
        # A CPU of its own each: what a plan says of CPUs is of the host, so that all of them see the same ones.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(
                pool.map(
                    lambda one: _keep(checkout, out, f"compile-{one[0]:03}", ["compile", *one[1]]), enumerate(compiles)
                )
            )
            list(
                pool.map(
                    lambda one: _keep(checkout, out, f"import-{one[0]:03}", one[1]), enumerate(compiles_of_scripts)
                )
            )
    if only != "compile":
        for number, words in enumerate(commands["then"]):
            started = time.monotonic()
            _keep(checkout, out, f"then-{number:03}", [_experiment(work, word) for word in words])
            print(f"{number:3} {time.monotonic() - started:6.1f} s  {' '.join(words)}", flush=True)


def _experiment(work: Path, word: str) -> str:
    named = re.fullmatch(r"\{(\w+)\}", word)
    if not named:
        return word
    found = sorted((work / "results").glob(f"*Z-{named[1]}"))
    return str(found[0].relative_to(work)) if found else f"results/none-{named[1]}"


def _keep(checkout: Path, out: Path, name: str, words: list[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("EWAN_")}
    environment |= {"EWAN_STATE": str(out / "state"), "EWAN_STORE": str(out / "store"), "COLUMNS": "120"}
    command = [str(checkout / ".venv/bin/ewan"), *words]
    done = subprocess.run(
        command, cwd=out / "work", env=environment, capture_output=True, text=True, timeout=PER_COMMAND_S, check=False
    )
    text = f"$ ewan {' '.join(words)}\n{done.stdout}--- stderr\n{done.stderr}--- status {done.returncode}\n"
    (out / "said" / f"{name}.txt").write_text(text.replace(str(out), "OUT").replace(str(checkout), "CHECKOUT"))
