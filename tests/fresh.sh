#!/usr/bin/env bash
# Runs both commands of the README in a minimal Debian that holds Go, the
# certificates it fetches modules with, and nothing else: what the demo or the
# tests need beyond that, tests/run.sh must install. The tree is a clone of the last
# commit. The root file system is made by debootstrap in a scratch folder ($VPLAY_FRESH, vplay-fresh in the
# temporary folder unless set), which is removed unless -k is given. Needs root.
#
#   tests/fresh.sh [-k]
set -euo pipefail
cd "$(dirname "$0")/.."
keep=
if [ "${1:-}" = -k ]; then keep=1; fi
[ "$(id -u)" = 0 ] || { echo "fresh.sh: a root file system is made by root: run it with sudo" >&2; exit 2; }
# shellcheck source=tests/need/debian.sh
. tests/need/debian.sh
install_suite fresh
work=${VPLAY_FRESH:-${TMPDIR:-/tmp}/vplay-fresh}
root=$work/root
mkdir -p "$work"

# What is mounted is mounted in a namespace of its own, which ends with the script.
if [ -z "${VPLAY_FRESH_INSIDE:-}" ]; then
  rm -rf --one-file-system "$root"
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  debootstrap --variant=minbase --include=ca-certificates "$release" "$root" "$(debian_archive)" >"$work/debootstrap.log"
  # The archives of this system, for security updates.
  apt-get indextargets --format 'deb [trusted=yes] $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' | sort -u >"$root/etc/apt/sources.list"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  [ -e /etc/ssl/certs/ca-certificates.crt ] && cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  cp -r "$(go env GOROOT)" "$root/usr/local/go"
  git clone -q --no-hardlinks . "$root/vplay"
  code=0
  VPLAY_FRESH_INSIDE=1 unshare --mount --pid --fork --kill-child "$PWD/tests/fresh.sh" || code=$?
  [ -n "$keep" ] || rm -rf --one-file-system "$work"
  exit $code
fi

proxy=$(go env GOPROXY) sums=$(go env GOSUMDB)
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
# Not chroot, in which no user namespace can be made: a machine's root is a mount.
cd "$root"
pivot_root . .
umount -l .
cd /
inside() {
  env -i PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb GOPROXY="$proxy" GOSUMDB="$sums" GOFLAGS=-buildvcs=false \
    /bin/bash -c "cd /vplay && $1"
}
inside 'go run ./cmd/vplayd demo </dev/null'
inside './tests/run.sh'
