#!/bin/sh
# Puts ewan-aioquic beside ewan-quic: ewan_aioquic.py with the Python that has aioquic in its first line. Prints its path.
# `./setup.sh quic` installs aioquic.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=$root/.venv/bin/python
[ -x "$python" ] && "$python" -c 'import aioquic' 2>/dev/null || { echo "quic: aioquic is missing: run ./setup.sh quic" >&2; exit 2; }
case $root in *" "*) echo "quic: $root has a blank, which no first line of a program takes: ewan-aioquic is not installed" >&2; exit 2 ;; esac
program=$root/target/release/ewan-aioquic
mkdir -p "${program%/*}"
{ echo "#!$python -P"; cat "$here/ewan_aioquic.py"; } >"$program.$$"
chmod +x "$program.$$"
cmp -s "$program.$$" "$program" && rm "$program.$$" || mv "$program.$$" "$program"
echo "$program"
