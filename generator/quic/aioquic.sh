#!/bin/sh
# Puts ewan-aioquic beside ewan-quic: an archive that Python runs (zipapp), with the Python that has aioquic in its first line, and
# the versions of both in its second one, so that the name of a result changes with them. The same sources give the same
# bytes. Prints its path. `./setup.sh quic` installs aioquic.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=$root/.venv/bin/python
versions=$("$python" -P -c 'import aioquic, cryptography, sys; print("aioquic", aioquic.__version__, "cryptography", cryptography.__version__, "Python", sys.version.split()[0])' 2>/dev/null) || { echo "quic: aioquic is missing: run ./setup.sh quic" >&2; exit 2; }
case $root in *" "*) echo "quic: $root has a blank, which no first line of a program takes: ewan-aioquic is not installed" >&2; exit 2 ;; esac
program=$root/target/release/ewan-aioquic
mkdir -p "${program%/*}"
"$python" -P - "$here/ewan_aioquic" "$program.$$" "#!$python -P
# $versions
" <<'PYTHON'
import sys
from pathlib import Path
from zipfile import ZipFile, ZipInfo

source, program, head = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
program.write_text(head)
with ZipFile(program, "a") as archive:
    for path in sorted(source.glob("*.py")):
        archive.writestr(ZipInfo(f"{source.name}/{path.name}"), path.read_bytes())
    archive.writestr(ZipInfo("__main__.py"), "from ewan_aioquic.main import main\n\nmain()\n")
PYTHON
chmod +x "$program.$$"
cmp -s "$program.$$" "$program" && rm "$program.$$" || mv "$program.$$" "$program"
echo "$program"
