# shellcheck shell=bash
# What the scripts of the tests ask of Debian: to be sourced.

programs=$(dirname "${BASH_SOURCE[0]}")/programs.txt

# packages_of prints the packages of a suite whose program or file is not here.
packages_of() {
  local suite=$1 what package suites
  while read -r what package suites; do
    case $what in '' | '#'*) continue ;; esac
    [[ ,$suites, == *,$suite,* ]] || continue
    case $what in
      /*) [ -e "$what" ] || echo "$package" ;;
      *) command -v "$what" >/dev/null 2>&1 || echo "$package" ;;
    esac
  done <"$programs" | sort -u
}

# install_packages installs packages when it may, else names them and returns 1.
install_packages() {
  [ $# -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "missing packages: $*" >&2
    echo "install them with: sudo apt-get install $*" >&2
    return 1
  fi
  echo "installing: $*" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# install_suite installs what a suite of programs.txt lacks.
install_suite() {
  local missing
  mapfile -t missing < <(packages_of "$1")
  install_packages "${missing[@]}"
}

# debian_archive prints the address of the archive that this system's packages
# come from.
debian_archive() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/\?$'
}

# fetch_sources PACKAGES... downloads source packages of a Debian release into
# the folder $1, with a private list of sources: the system's own stays as it is.
fetch_sources() {
  local folder=$1 release=$2 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  shift 2
  [ -e "$keyring" ] || install_packages debian-archive-keyring || return
  mkdir -p "$folder/lists/partial"
  echo "deb-src [signed-by=$keyring] $(debian_archive) $release main" >"$folder/sources.list"
  local apt=(apt-get -qq -o APT::Sandbox::User=root -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$folder/lists")
  (cd "$folder" && "${apt[@]}" update && "${apt[@]}" --download-only source "$@")
}
