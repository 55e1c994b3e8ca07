#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The arrows between the rooms, read from the includes: ui, scripts -> sessions -> engine <- backends.
# Inside engine/: base <- search <- tensor <- model <- tune. Usage: arrows.sh SOURCE-ROOT
set -eu
cd "$1"
bad=0

# allow ROOM PATTERN: what files of the room may include, of this project.
allow() {
    wrong=$(grep -rnE '^#include "(engine|backends|sessions|scripts|ui|tests)/' --include='*.[ch]' "$1" |
        grep -vE "#include \"($2)" || true)
    if [ -n "$wrong" ]; then
        printf '%s may include %s only:\n%s\n' "$1" "$2" "$wrong"
        bad=1
    fi
}

allow engine/base 'engine/base/'
allow engine/search 'engine/(base|search)/'
allow engine/tensor 'engine/(base|search|tensor)/'
allow engine/model 'engine/(base|search|tensor|model)/'
allow engine/tune 'engine/'
allow backends 'engine/|backends/'
allow sessions 'engine/|sessions/'
allow scripts 'engine/|sessions/|scripts/'
allow ui 'engine/|sessions/|scripts/|ui/|backends/(backend|library|local|runner)\.h|backends/[a-z]+/[a-z]+\.h'

# main alone knows each backend by name; recorded spaces are inputs too.
named=$(grep -rnE '^#include "backends/[a-z]+/' --include='*.[ch]' ui | grep -vE '^ui/main\.c:|"backends/recorded/' || true)
if [ -n "$named" ]; then
    printf 'only ui/main.c names a backend:\n%s\n' "$named"
    bad=1
fi

# Libraries stay in their rooms.
stay() {
    wrong=$(grep -rlE "^#include <($1)" --include='*.[ch]' engine backends sessions scripts ui |
        grep -vE "^($2)" || true)
    if [ -n "$wrong" ]; then
        printf '<%s> is included outside of %s:\n%s\n' "$1" "$2" "$wrong"
        bad=1
    fi
}
stay 'llvm-c/' 'backends/llvm/'
stay 'sqlite3' 'sessions/'
stay 'curses|ncurses|panel' 'ui/'
stay 'zlib' 'backends/recorded/'
stay 'lua|lauxlib|lualib' 'scripts/'

[ "$bad" = 0 ] && echo 'arrows: all includes point the right way'
exit $bad
