# shellcheck shell=bash
# Part of run.sh: fetches and builds the programs below $work.

# shellcheck source=tests/need/debian.sh
. "$root/tests/need/debian.sh"

# release is the Debian release whose sources are tested.
release=bookworm

# fetch installs what is needed and gets the source packages.
fetch() {
  install_suite foreign || exit 2
  [ -e "$work/src/fetched" ] && return
  mkdir -p "$work/src/qemu" "$work/src/valgrind"
  fetch_sources "$work/apt" $release qemu valgrind
  tar -xf "$work"/apt/qemu_*.orig.tar.xz -C "$work/src/qemu" --strip-components=1 --wildcards '*/tests/tcg'
  tar -xf "$work"/apt/valgrind_*.orig.tar.* -C "$work/src/valgrind" --strip-components=1
  touch "$work/src/fetched"
}

# The folders of Valgrind's tests, and the prefixes of their programs' names.
valgrind_folders=(amd64:none/tests/amd64 amd64-linux:none/tests/amd64-linux none:none/tests linux:none/tests/linux)

# build makes everything with the projects' own make files. What does not
# compile shows as a program that is not there.
build() {
  local v=$work/src/valgrind q=$work/src/qemu/tests/tcg f
  [ -e "$work/built" ] && return
  (cd "$v" && ./configure -q --enable-only64bit) >"$work/configure.log" 2>&1
  : >"$work/make.log"
  for f in "${valgrind_folders[@]}"; do
    # The list behind check_PROGRAMS, without what is not built here.
    echo 'print-%: ; @echo $($*)' >"$work/print.mk"
    # shellcheck disable=SC2046
    make -k -C "$v/${f#*:}" $(make -s -C "$v/${f#*:}" -f Makefile -f "$work/print.mk" print-check_PROGRAMS) >>"$work/make.log" 2>&1 || true
  done
  mkdir -p "$work/qemu"
  # shellcheck disable=SC2046
  make -k -C "$work/qemu" -f "$q/Makefile.target" TARGET=x86_64-linux-user TARGET_NAME=x86_64 SRC_PATH="$work/src/qemu" CC=gcc PYTHON=python3 \
    BUILD_STATIC=y $(programs | sed -n 's/^qemu.\([^\t]*\).*/\1/p') >>"$work/make.log" 2>&1 || true
  touch "$work/built"
}

# programs prints a line per program: name, folder, program, file of its
# standard input, arguments quoted for the shell; separated by tabs.
programs() {
  local f name folder t stdin args
  for f in $(cd "$work/src/qemu/tests/tcg" && echo i386/*.c x86_64/*.c multiarch/*.c multiarch/linux/*.c) test-x86_64.c sha512-sse.c; do
    name=$(basename "$f" .c)
    # Built as test-x86_64.
    [ "$name" = test-i386 ] || printf '%s\t%s\t%s\t%s\t\n' "qemu/$name" "$work/qemu" "$name" /dev/null
  done
  for f in "${valgrind_folders[@]}"; do
    folder=$work/src/valgrind/${f#*:}
    for name in $(cd "$folder" && printf '%s\n' *.c *.cpp *.def *.vgtest | sed -n 's/\.\(c\|cpp\|def\|vgtest\)$//p' | grep -v '\*' | sort -u); do
      t=$folder/$name.vgtest prog=$name stdin=/dev/null args=
      if [ -e "$t" ]; then
        prog=$(sed -n 's/^prog: *//p' "$t")
        args=$(sed -n 's/^args: *//p' "$t")
        case $args in '< '*) stdin=${args#< } args= ;; esac
      fi
      # Parts of other programs, another folder's, Valgrind's own command line.
      case $f:$name in none:*:tls2 | none:*:tls_so | none:*:tls2_so | none:*:procfs-non-linux | none:*:require-text-symbol-? | none:*:empty-exe | none:*:allexec*) continue ;; esac
      case $prog in "$name" | ../../../none/tests/amd64/"$name") ;; *) [ -e "$folder/$(basename "$prog").c" ] || continue ;; esac
      printf '%s\t%s\t%s\t%s\t%s\n' "${f%%:*}/$name" "$folder" "$(basename "$prog")" "$stdin" "$args"
    done
  done
}
