# shellcheck shell=bash
# Functions of setup and undo: messages, running as root, and the journal of changes.

# Debian has useradd, debootstrap and the daemons in directories that are not on an ordinary user's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf 'machine: %s\n' "$*"; }

# fail STATUS LINE...   3: something on this host is missing; 4: a program failed.
fail() {
    local status=$1
    shift
    printf 'machine: %s\n' "$@" >&2
    exit "$status"
}

# The user to set up for: under sudo, the user who called it.
owner=$(id -un)
owner_home=$HOME
if [[ $EUID -eq 0 && -n ${SUDO_USER:-} && $SUDO_USER != root ]]; then
    owner=$SUDO_USER
    owner_home=$(getent passwd "$owner" | cut -d: -f6)
fi
# shellcheck disable=SC2034  # read by the scripts that source this file
state=${XDG_STATE_HOME:-$owner_home/.local/state}/ctk/machine
journal=$state/journal

as_owner() {
    if [[ $owner == "$(id -un)" ]]; then "$@"; else runuser -u "$owner" -- "$@"; fi
}

# Commands run as root are shown, even if their output is redirected.
exec 3>&1
sudo=()
[[ $EUID -eq 0 ]] || sudo=(sudo)

as_root() {
    say "  ${sudo[*]:+sudo }$*" >&3
    "${sudo[@]}" "$@"
}

# Without root, sudo must work: without a password, or with a terminal to ask for it.
can_become_root() {
    [[ $EUID -eq 0 ]] && return
    command -v sudo >/dev/null || return 1
    sudo -n true 2>/dev/null || { : </dev/tty; } 2>/dev/null
}

# journal_add KIND WHAT PREVIOUS   Written before the change, so that every change is recorded.
journal_add() {
    as_owner mkdir -p "$state"
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" | as_owner tee -a "$journal" >/dev/null
}
