# The ctk guard: no command below may change the GPU framework of the base.
ctk_guard=$(mktemp -d "${TMPDIR:-/tmp}/ctk-new.XXXXXX" 2>/dev/null || mktemp -d /tmp/ctk-new.XXXXXX)
# The directory gets its name when it is open: the next build removes one that no process has open.
exec 9<"$ctk_guard"
ctk_named=${ctk_guard%/*}/ctk-guard.${ctk_guard##*.}
mv "$ctk_guard" "$ctk_named" && ctk_guard=$ctk_named
cat > "$ctk_guard/lock.json" <<'CTK_END_OF_FILE'
<lock.json>
CTK_END_OF_FILE
cat > "$ctk_guard/log_lines.py" <<'CTK_END_OF_FILE'
<log_lines.py>
CTK_END_OF_FILE
cat > "$ctk_guard/state.py" <<'CTK_END_OF_FILE'
<state.py>
CTK_END_OF_FILE
cat > "$ctk_guard/compare.py" <<'CTK_END_OF_FILE'
<compare.py>
CTK_END_OF_FILE
cat > "$ctk_guard/debian.py" <<'CTK_END_OF_FILE'
<debian.py>
CTK_END_OF_FILE
cat > "$ctk_guard/install.py" <<'CTK_END_OF_FILE'
<install.py>
CTK_END_OF_FILE
cat > "$ctk_guard/traps.py" <<'CTK_END_OF_FILE'
<traps.py>
CTK_END_OF_FILE
cat > "$ctk_guard/attempt.py" <<'CTK_END_OF_FILE'
<attempt.py>
CTK_END_OF_FILE
cat > "$ctk_guard/imports.py" <<'CTK_END_OF_FILE'
<imports.py>
CTK_END_OF_FILE
cat > "$ctk_guard/check.py" <<'CTK_END_OF_FILE'
<check.py>
CTK_END_OF_FILE
cat > "$ctk_guard/guard.py" <<'CTK_END_OF_FILE'
<guard.py>
CTK_END_OF_FILE
ctk_python=$(command -v python3 || command -v python)
ctk_guard_run() {
    PYTHONNOUSERSITE=1 "$ctk_python" -E -s -B "$ctk_guard/guard.py" "$1" "$ctk_guard"
}
ctk_guard_end() {
    ctk_status=$1
    trap - EXIT
    if [ "$ctk_status" -eq 0 ]; then
        ctk_guard_run after || ctk_status=$?
    else
        ctk_guard_run failed || true
    fi
    rm -rf "$ctk_guard"
    exit "$ctk_status"
}
# An `exit 0` in the middle of a script does not bypass the guard.
trap 'ctk_guard_end $?' EXIT
ctk_guard_run before-apt
apt-get install x
ctk_guard_run after-apt
export PIP_CONSTRAINT="${PIP_CONSTRAINT:+$PIP_CONSTRAINT }$ctk_guard/constraint.txt"
export UV_CONSTRAINT="${UV_CONSTRAINT:+$UV_CONSTRAINT }$ctk_guard/constraint.txt"
export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
echo rest
ctk_guard_end 0
