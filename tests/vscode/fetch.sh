#!/usr/bin/env bash
# Installs a real VS Code into a folder, from npm alone, unless it is there: its server part
# (code-server), what drives it in a browser (playwright-core), and what packs extensions
# (vsce). Their versions are fixed, that of vsce for the recipe vsix, too; nothing is compiled,
# and no install script runs.
#
#   tests/vscode/fetch.sh FOLDER
set -euo pipefail
folder=$1
code_server=4.96.4 # VS Code 1.96.4; later ones want a newer node than Debian's
playwright=1.49.1
vsce=2.32.0
stamp="$folder/installed-$code_server-$playwright-$vsce"
[ ! -e "$stamp" ] || exit 0

install() { npm install --ignore-scripts --no-audit --no-fund --loglevel error "$@" >/dev/null; }

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
echo '{ "private": true }' >package.json
install "code-server@$code_server" "playwright-core@$playwright" "@vscode/vsce@$vsce"

# What code-server's own install script would do. Its list of versions names git
# repositories, and npm's registry has the same packages.
vscode=$folder/node_modules/code-server/lib/vscode
for part in "$vscode" "$vscode/extensions"; do
  rm -f "$part/npm-shrinkwrap.json"
  (cd "$part" && install --omit=dev)
done
# The search of files is Debian's, and passwords, which argon2 is for, are not used.
mkdir -p "$vscode/node_modules/@vscode/ripgrep/bin"
ln -sf "$(command -v rg)" "$vscode/node_modules/@vscode/ripgrep/bin/rg"
echo 'module.exports = { hash: async () => "", verify: async () => false, needsRehash: () => false };' \
  >"$folder/node_modules/argon2/argon2.js"
touch "$stamp"
