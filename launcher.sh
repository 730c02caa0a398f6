#!/bin/sh
# Puts `ewan` on the PATH, and takes it away again: `launcher.sh install|uninstall [PREFIX]`, called by make. What it
# writes is PREFIX/bin/ewan (default: ~/.local), a few lines that start .venv/bin/ewan of this tree. A file of that name
# that it did not write stays.
set -eu
cd "$(dirname "$0")"
tree=$(pwd)
action=$1
prefix=${2-${HOME:+$HOME/.local}}
mark="# Launcher of ewan, the network emulation lab; written by make install, removed by make uninstall."

fail() { echo "make $action: $*" >&2; exit 2; }
# A word as a shell reads it back, whatever is in it.
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

case $prefix in
    /*) ;;
    "") fail "HOME is not set: name a directory, make $action PREFIX=/usr/local" ;;
    *) fail "PREFIX \"$prefix\": write an absolute path, like /usr/local" ;;
esac
place=$prefix/bin
file=$place/ewan
of_tree="tree=$(quoted "$tree")"

ours() { [ -f "$file" ] && [ "$(sed -n 2p "$file" 2>/dev/null | tr -d '\0')" = "$mark" ]; }
there() { [ -e "$file" ] || [ -L "$file" ]; }

if [ "$action" = uninstall ]; then
    if ! there; then
        echo "$file is not there: nothing to remove"
    elif ! ours; then
        fail "$file is not of make install: it stays; remove it by hand if it is yours"
    elif [ "$(sed -n 3p "$file")" != "$of_tree" ]; then
        fail "$file starts the ewan of another tree ($(sed -n '3s/^tree=//p' "$file")): it stays; run make uninstall there"
    else
        rm -- "$file" || fail "$file cannot be removed: run make uninstall as the user who installed it"
        echo "removed $file"
    fi
    exit 0
fi

if there && ! ours; then
    fail "$file is there and not of make install: it stays; name another directory, make install PREFIX=/usr/local"
fi
mkdir -p "$place" 2>/dev/null && [ -w "$place" ] ||
    fail "$place cannot be written: name a directory of yours (make install PREFIX=DIR), or run it as root"
# Beside it and then in its place: an ewan that is just being started finds the old file or the new one.
new=$(mktemp "$place/.ewan-XXXXXX") || fail "$place cannot be written: name another directory with PREFIX="
trap 'rm -f -- "$new"' EXIT
cat >"$new" <<END
#!/bin/sh
$mark
$of_tree
[ -x "\$tree/.venv/bin/ewan" ] || { echo "ewan: \$tree is not set up: run make setup there" >&2; exit 2; }
exec "\$tree/.venv/bin/ewan" "\$@"
END
chmod 755 "$new"
mv -f -- "$new" "$file"
echo "installed $file"
# closed FILE BIT: the first place on the way to a file that other users may not enter, or the file, if that is closed to
# them (BIT: r, x); nothing where none is.
closed() {
    path=$(readlink -f -- "$1") || return 0
    bit=$2
    [ -e "$path" ] || return 0
    while [ "$path" != / ]; do
        case $bit$(stat -c %A -- "$path") in r???????r* | x?????????[xt]) ;; *) shut=$path ;; esac
        path=$(dirname -- "$path") bit=x
    done
    printf '%s' "${shut-}"
}
case $prefix in
    "${HOME-/nowhere}"/*) ;;
    *)
        for each in "r ewan/cli.py" "x .venv/bin/ewan" "x .venv/bin/python"; do
            shut=$(closed "${each#* }" "${each% *}")
            [ -n "$shut" ] || continue
            case ${each#* } in
                *python) way="take a Python that all may run: rm -r .venv, then PATH=/usr/bin:\$PATH make install PREFIX=$prefix" ;;
                *) way="put this tree where all may read it, below /opt for example, or chmod -R go+rX it" ;;
            esac
            echo "make install: other users cannot start it: $shut is closed to them, and ${each#* } is there: $way" >&2
            break
        done
        ;;
esac
# Whoever may not write in this tree would compile its modules at each command (0.5 s).
[ ! -x .venv/bin/python ] || .venv/bin/python -m compileall -q ewan labs generator calibration analysis emulator experiments extras >/dev/null 2>&1 || true

# What the person's own shell would take. Make's shell may have another PATH than a login shell, never a shorter one.
case :$PATH: in
    *:"$place":*)
        first=$(command -v ewan || true)
        [ "$first" = "$file" ] || echo "$first comes before it on your PATH: remove that, or write $file"
        exit 0
        ;;
esac
shown=$place
[ "${prefix#"${HOME-/nowhere}"/}" = "$prefix" ] || shown="\$HOME/${place#"$HOME"/}"
export_line="export PATH=\"$shown:\$PATH\""
case ${SHELL-} in
    */zsh) line="echo '$export_line' >>~/.zshrc; $export_line" ;;
    */fish) line="fish_add_path $(quoted "$place")" ;;
    *) line="echo '$export_line' >>~/.bashrc; $export_line" ;;
esac
echo "$place is not on your PATH; type this once:"
echo "  $line"
