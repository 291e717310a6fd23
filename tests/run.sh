#!/usr/bin/env bash
# Installs what the tests need when it may, else names what is missing; then
# vets and tests everything. CI and `just test` call this script.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/need/debian.sh
. tests/need/debian.sh
linux_amd64=
if [ "$(uname -sm)" = "Linux x86_64" ]; then
  linux_amd64=1
fi
if [ -n "$linux_amd64" ]; then
  install_suite tests
  # python3's own tests are a package of its version.
  python3 -c 'import test.test_signal' 2>/dev/null ||
    install_packages "$(python3 -c 'import sys; print("libpython3.%d-testsuite" % sys.version_info[1])')"
fi
# An editor's debug adapter, where npm is (tests/e2e/cdt_test.go). Without it that test
# is among those that are skipped.
if command -v npm >/dev/null 2>&1; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/vplay-tests
  [ -e "$cache/node_modules/cdt-gdb-adapter" ] ||
    timeout 120 npm install --prefix "$cache" --ignore-scripts --no-audit --no-fund --silent cdt-gdb-adapter@1.7.0 >/dev/null 2>&1 ||
    echo "npm could not install cdt-gdb-adapter" >&2
fi
# VS Code itself, from npm, with Debian's chromium (tests/vscode). They are skipped likewise.
if [ -n "$linux_amd64" ] && command -v npm >/dev/null 2>&1 && install_suite vscode; then
  timeout 400 tests/vscode/fetch.sh "${XDG_CACHE_HOME:-$HOME/.cache}/vplay-tests/vscode" ||
    echo "npm could not install VS Code" >&2
fi
# GDB's own tests, where Debian's archive is: tests/gdbsuite runs a part of them. They
# are skipped like the one above.
if [ -n "$linux_amd64" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  install_suite gdbsuite || echo "apt-get could not install what GDB's tests need" >&2
  timeout 180 tests/gdbsuite/fetch.sh "${XDG_CACHE_HOME:-$HOME/.cache}/vplay-tests/gdb" >/dev/null 2>&1 ||
    echo "GDB's tests could not be fetched" >&2
fi
command -v go >/dev/null 2>&1 || { echo "Go is missing: https://go.dev/dl" >&2; exit 1; }

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  printf 'gofmt would change:\n%s\n' "$unformatted" >&2
  exit 1
fi
go vet ./...
for t in windows/amd64 linux/arm64 darwin/arm64; do
  echo "vet for $t"
  GOOS=${t%/*} GOARCH=${t#*/} CGO_ENABLED=0 go vet ./...
done
if command -v just >/dev/null 2>&1; then
  just --fmt --check --unstable >/dev/null
fi

# All that could be had is here now: a test that misses some of it fails. What is
# skipped all the same is listed at the end, with the reason.
if [ -n "$linux_amd64" ]; then
  export VPLAY_REQUIRE_ALL=1
fi
verbose=
for a in "$@"; do
  if [ "$a" = -v ]; then verbose=-v; fi
done
# The longest package comes first. It waits more than it computes, so that the others are tested beside it.
go test -json -timeout 60m "$@" ./tests/record ./... | go run ./tests/internal/summary $verbose
