#!/usr/bin/env bash
# Fetches GDB's own tests into a folder, unless they are there: from the source
# package of the Debian release that this system is, with a private list of
# sources, so that the system's own stays as it is.
#
#   tests/gdbsuite/fetch.sh FOLDER
set -euo pipefail
src=$1
[ ! -e "$src/gdb/testsuite/lib/gdb.exp" ] || exit 0
mkdir -p "$(dirname "$src")"
tmp=$(mktemp -d "$src.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/src"
# shellcheck source=tests/need/debian.sh
. "$(dirname "$0")/../need/debian.sh"
fetch_sources "$tmp/apt" "$(. /etc/os-release && echo "$VERSION_CODENAME")" gdb
tar -xf "$tmp"/apt/gdb_*.orig.tar.xz -C "$tmp/src" --strip-components=1 --wildcards '*/gdb/testsuite/*'
mkdir -p "$src"
cp -r "$tmp/src/." "$src/"
