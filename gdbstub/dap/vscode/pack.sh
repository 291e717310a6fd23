#!/usr/bin/env bash
# Packs the extension into a file that VS Code installs.
#
#   gdbstub/dap/vscode/pack.sh VSCE FILE.vsix
set -euo pipefail
vsce=$(realpath -s "$(command -v "$1")") file=$2
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r "$here/package.json" "$here/README.md" "$here/src" "$here/media" "$here/../../../LICENSE" "$tmp"
mkdir -p "$(dirname "$file")"
file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
touch "$tmp/.vscodeignore" # nothing to leave out
cd "$tmp"
"$vsce" package --no-dependencies --allow-missing-repository --out "$file" >/dev/null
