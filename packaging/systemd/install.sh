#!/usr/bin/env bash
# Installs Jetlake as a service of systemd, or brings an installation up to date.
#
# It can be run again at any time: configuration that is there stays as it is, everything else is written if it differs.
set -euo pipefail

readonly PYTHON_MINOR_MIN=11

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=/opt/jetlake
root=
wheel=
python=python3
dry_run=
package=yes
uninstall=

usage() {
  cat <<'TEXT'
Usage: install.sh [options]

  --wheel FILE     install this wheel (`make wheel` builds one); without it the clone that this script is in, which needs Rust
  --prefix FOLDER  where the program goes; /opt/jetlake unless given
  --python FILE    the Python to use, 3.11 or newer; python3 unless given
  --no-package     leave the program in PREFIX alone, write the service's files only
  --root FOLDER    write below this folder instead of /, without users and without systemctl; for images and packages,
                   together with --no-package: a virtual environment cannot be moved
  --dry-run        print what would be done
  --uninstall      remove the service and the program; keeps /etc/jetlake and /var/lib/jetlake
  --help           show this text
TEXT
}

fail() { # fail WHAT WHY WHAT-TO-DO
  printf 'install.sh: %s: %s. %s\n' "$1" "$2" "$3" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --wheel | --prefix | --python | --root)
      [ $# -ge 2 ] || fail "$1" "it needs a value" "See --help."
      declare "${1#--}=$2"
      shift
      ;;
    --no-package) package= ;;
    --dry-run) dry_run=yes ;;
    --uninstall) uninstall=yes ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) fail "$1" "this option does not exist" "See --help." ;;
  esac
  shift
done

readonly unit=$root/etc/systemd/system/jetlake.service
readonly configuration=$root/etc/jetlake
readonly program=$root$prefix

do_it() { # do_it COMMAND…: runs it, or prints it in a dry run
  if [ -n "$dry_run" ]; then
    printf 'would run: %s\n' "$*"
  else
    "$@"
  fi
}

write() { # write FILE MODE, the text on standard input: writes the file if it differs
  local text
  # The x keeps the newlines at the end, which the shell would cut off.
  text=$(cat; printf x)
  if [ -f "$1" ] && [ "$(cat "$1"; printf x)" = "$text" ]; then
    printf 'unchanged: %s\n' "$1"
  elif [ -n "$dry_run" ]; then
    printf 'would write: %s\n' "$1"
  else
    mkdir -p "$(dirname "$1")"
    # Written beside and renamed: a half-written unit must never be read.
    printf '%s' "${text%x}" >"$1.new"
    chmod "$2" "$1.new"
    mv "$1.new" "$1"
    printf 'wrote: %s\n' "$1"
  fi
}

write_once() { # write_once FILE MODE: as write, unless the file is there
  if [ -e "$1" ]; then
    # Read to the end: a command that writes into a pipe without a reader is killed, and this script ends with it.
    cat >/dev/null
    printf 'kept: %s\n' "$1"
  else
    write "$1" "$2"
  fi
}

on_this_machine() { [ -z "$root" ]; }

check() {
  case $prefix in
    /*) ;;
    *) fail "--prefix $prefix" "it is not an absolute path" "Write it from the root, as /opt/jetlake." ;;
  esac
  if on_this_machine && [ -z "$dry_run" ] && [ "$(id -u)" -ne 0 ]; then
    fail "installing below /" "you are not root" "Run it with sudo, or try --dry-run."
  fi
  if on_this_machine && [ -z "$dry_run" ] && [ ! -d /run/systemd/system ]; then
    fail "installing a service" "this machine was not started by systemd" "Use --root for an image, or run \`jetlake server\` yourself."
  fi
  [ -n "$package" ] && [ -z "$uninstall" ] || return 0
  command -v "$python" >/dev/null || fail "$python" "it is not installed" "Install Python 3.$PYTHON_MINOR_MIN or newer, or name one with --python."
  "$python" -c "import sys; sys.exit(sys.version_info < (3, $PYTHON_MINOR_MIN))" ||
    fail "$python" "it is older than 3.$PYTHON_MINOR_MIN" "Name a newer one with --python."
  if [ -n "$wheel" ]; then
    [ -f "$wheel" ] || fail "$wheel" "there is no such file" "\`make wheel\` builds one into build/wheels."
  else
    command -v cargo >/dev/null || fail "installing from the clone" "cargo is missing" "Install Rust 1.85 or newer, or use --wheel."
  fi
  on_this_machine ||
    fail "--root $root" "a virtual environment cannot be moved to another folder" "Add --no-package, and install the wheel inside the image."
}

install_program() {
  [ -n "$package" ] || return 0
  if [ ! -x "$program/bin/python" ]; then
    do_it "$python" -m venv "$program"
  fi
  do_it "$program/bin/python" -m pip install -q --disable-pip-version-check --upgrade "${wheel:-$here/../..}"
}

create_user() {
  on_this_machine || return 0
  if getent passwd jetlake >/dev/null; then
    printf 'kept: user jetlake\n'
  else
    do_it useradd --system --user-group --home-dir /var/lib/jetlake --shell /usr/sbin/nologin jetlake
  fi
}

install_files() {
  sed "s|@PREFIX@|$prefix|g" "$here/jetlake.service" | write "$unit" 0644
  write_once "$configuration/server.conf" 0644 <"$here/server.conf"
  printf '# NAME=value, one on each line; server.conf uses them as $NAME.\n' | write_once "$configuration/environment" 0600
}

reload() {
  on_this_machine || return 0
  do_it systemctl daemon-reload
}

remove() {
  if on_this_machine; then
    do_it systemctl disable --now jetlake || true
  fi
  do_it rm -f "$unit"
  if [ -n "$package" ]; then
    do_it rm -rf "$program"
  fi
  reload
  printf 'kept: %s and %s\n' "$configuration" "$root/var/lib/jetlake"
}

check
if [ -n "$uninstall" ]; then
  remove
else
  install_program
  create_user
  install_files
  reload
  on_this_machine && [ -z "$dry_run" ] && printf 'Start it with: systemctl enable --now jetlake\n'
fi
exit 0
