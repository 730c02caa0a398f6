# Where built things are kept; sourced by the scripts that build them. `root` is the project's directory.

# The cache's directory, which all clones of a user share: $EWAN_CACHE, else ewan/ in $XDG_CACHE_HOME or ~/.cache.
# Nothing with EWAN_CACHE=off, or without a home.
cache_directory() {
    case ${EWAN_CACHE-} in
    off) ;;
    /*) printf '%s\n' "$EWAN_CACHE" ;;
    ?*) echo "ewan: EWAN_CACHE=$EWAN_CACHE: write an absolute path, or off" >&2; return 2 ;;
    *)
        case ${XDG_CACHE_HOME-} in
        /*) printf '%s\n' "$XDG_CACHE_HOME/ewan" ;;
        *) [ -z "${HOME-}" ] || printf '%s\n' "$HOME/.cache/ewan" ;;
        esac
        ;;
    esac
}

# kept NAME: the directory for things of this kind, made: in the cache, or in target/ where there is no cache that can be
# written. Nobody else reads a user's own cache, or holds a lock in it.
kept() {
    cache=$(cache_directory) || return
    if [ -n "$cache" ] && mkdir -p "$cache/$1" 2>/dev/null && [ -w "$cache/$1" ]; then
        [ -n "${EWAN_CACHE-}" ] || chmod go= "$cache" 2>/dev/null || true
        [ -e "$cache/CACHEDIR.TAG" ] ||
            printf 'Signature: 8a477f597d28d172789f06886806bc55\n# Built by ewan; make clean CACHE=1 removes it.\n' >"$cache/CACHEDIR.TAG"
        printf '%s\n' "$cache/$1"
    else
        mkdir -p "$root/target/$1" && printf '%s\n' "$root/target/$1"
    fi
}

# shared NAME: the directory for things of this kind that an administrator keeps for all users of this machine, below
# $EWAN_SHARED_CACHE or /var/cache/ewan; nothing where there is none. It is a cache like any other, and only read. What
# others than root and this user may write there is not used: programs come from it.
shared() {
    case ${EWAN_SHARED_CACHE-} in
    off) return ;;
    /*) common=$EWAN_SHARED_CACHE ;;
    ?*) echo "ewan: EWAN_SHARED_CACHE=$EWAN_SHARED_CACHE: write an absolute path, or off" >&2; return 2 ;;
    *) common=/var/cache/ewan ;;
    esac
    [ -d "$common/$1" ] || return 0
    loose=$(find "$common" "$common/$1" -maxdepth 2 ! -type l \( ! -user 0 ! -user "$(id -u)" -o -perm /022 \) 2>/dev/null | head -n 1)
    if [ -n "$loose" ]; then
        echo "ewan: $loose can be written by others: the cache $common is not used" >&2
    else
        printf '%s\n' "$common/$1"
    fi
}

digest() { sha256sum "$1" | cut -d' ' -f1; }

# note FILE: its SHA-256, size, time of change in ns and inode beside it, as labs/runtime/whole.py reads them.
note() { echo "$(digest "$1") $(stat -c '%s %.9Y %i' "$1" | tr -d .)" >"$1.sum.$$" && mv "$1.sum.$$" "$1.sum"; }

# whole FILE: whether a program is there with the bytes that were noted.
whole() {
    [ -x "$1" ] || return 1
    [ "$(cut -d' ' -f1 "$1.sum" 2>/dev/null)" != "$(digest "$1")" ] || return 0
    echo "ewan: $1 is damaged, or its note $1.sum is missing: it is not used" >&2
    return 1
}

# Removes the cache: a directory that `kept` marked, and no other.
forget() {
    cache=$(cache_directory) || return
    [ -n "$cache" ] && [ -d "$cache" ] || return 0
    grep -qs '^# Built by ewan' "$cache/CACHEDIR.TAG" ||
        { echo "ewan: $cache was not made by ewan (no CACHEDIR.TAG of its): it stays" >&2; return 2; }
    rm -rf "$cache"
}
