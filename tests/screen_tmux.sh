#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The screen on a real terminal: a private tmux server gives it a pseudo-terminal of a known size,
# and what stands on it is read back. Usage: screen_tmux.sh DEMO_SCREEN DEMO_LIVE.
# Exit 77 without tmux.
set -u
command -v tmux > /dev/null || exit 77
server=squall-test-$$
dir=$(mktemp -d)
# Where they are built may have any name; open() starts them in $dir.
ln -s "$(realpath "$1")" "$dir/demo"
ln -s "$(realpath "$2")" "$dir/live"
demo=./demo
live=./live
# Commands are for this shell, whatever the user's is.
export SHELL=/bin/sh
failed=0
trap 'tmux -L "$server" kill-server 2> /dev/null; rm -rf "$dir"' EXIT
# What a crash leaves behind is of no use here; a sanitizer must not take the signal from us.
ulimit -c 0
options='abort_on_error=0:handle_segv=0:handle_abort=0:detect_leaks=0'

tmux -L "$server" -f /dev/null new-session -d -s keep 'exec sleep 600' || exit 77

tm() { tmux -L "$server" -f /dev/null "$@"; }
keys() { tm send-keys -t t "$@"; }
screen() { tm capture-pane -p -t t 2> /dev/null; }

# open COMMAND: a shell of 80x24 that runs it and then says how it ended.
open() {
    tm kill-session -t t 2> /dev/null
    tm new-session -d -s t -x 80 -y 24 \
        "cd '$dir' && export LC_ALL=C.UTF-8 ASAN_OPTIONS='$options' && stty -a > stty.before &&
         { $1; echo \"ended with \$?\"; stty -a > stty.after; exec sleep 600; }"
}

# wait_for TEXT WHAT: up to ten seconds.
wait_for() {
    i=0
    while [ $i -lt 100 ]; do
        if screen | grep -qF -- "$1"; then
            return 0
        fi
        sleep 0.1
        i=$((i + 1))
    done
    echo "not ok: $2: '$1' does not appear on:"
    screen
    failed=1
    return 1
}

pid_of_demo() { tm list-panes -t t -F '#{pane_pid}' | while read -r p; do pgrep -P "$p" | head -n 1; done; }

restored() {
    sleep 0.2
    cmp -s "$dir/stty.before" "$dir/stty.after" || { echo "not ok: $1: terminal modes differ"; failed=1; }
}

open "$demo --speed 40 --tasks 3"
wait_for 'conv2d_3x3_64x56_64' 'start'
keys '?'
wait_for 'Keys in tasks' 'help'
keys Escape
wait_for '2 Best so far' 'Esc leaves the help'
wait_for 'finished: all tasks are done' 'the whole session is played'
tm resize-window -t t -x 120 -y 40
wait_for 'GFLOP/s peak share' 'a wide screen has more columns'
wait_for '5 Failures and notes' 'and more panes'
tm resize-window -t t -x 30 -y 5
wait_for 'needs 40x10, is 30x5' 'too small'
tm resize-window -t t -x 80 -y 24
wait_for '3 Leaders' 'large enough again'
keys P
wait_for 'squall-screen-1.txt' 'P says the name'
grep -q '3 Leaders' "$dir/squall-screen-1.txt" || { echo 'not ok: P writes the screen'; failed=1; }

# Nothing changes any more: no frame is drawn, nothing wakes up.
sleep 6
pid=$(pid_of_demo)
before=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
voluntary=$(awk '/^voluntary/ { print $2 }' "/proc/$pid/status")
sleep 2
after=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
wakes=$(($(awk '/^voluntary/ { print $2 }' "/proc/$pid/status") - voluntary))
[ $((after - before)) -le 1 ] && [ $wakes -le 1 ] ||
    { echo "not ok: idle: $((after - before)) ticks, $wakes wake-ups in 2 s"; failed=1; }
keys q
wait_for 'ended with 0' 'q leaves'
restored 'q'

for sig in TERM INT; do
    open "$demo --speed 1"
    wait_for '2 Best so far' "before SIG$sig"
    kill -s "$sig" "$(pid_of_demo)"
    wait_for 'ended with 0' "SIG$sig"
    restored "SIG$sig"
done

open "$demo --speed 1"
wait_for '2 Best so far' 'before the crash'
kill -s SEGV "$(pid_of_demo)"
wait_for 'crashed with SIGSEGV' 'a crash is told'
wait_for 'ended with 139' 'and ends as one'
restored 'SIGSEGV'

# Stopped and continued by a shell with job control.
open "PS1='\$ ' bash --norc --noprofile -i"
keys "$demo --speed 2" Enter
wait_for '2 Best so far' 'before Ctrl-Z'
keys C-z
wait_for 'Stopped' 'Ctrl-Z gives the terminal back'
keys 'echo shell-$((40+2))' Enter
wait_for 'shell-42' 'the shell can be used'
keys fg Enter
wait_for '2 Best so far' 'fg brings the screen back'
keys q
sleep 0.5
keys 'echo left-$?' Enter
wait_for 'left-0' 'left after Ctrl-Z'

open "TERM=dumb $demo"
wait_for 'has no screen; use --batch' 'a dumb terminal'
open "$demo < /dev/null"
wait_for 'needs a terminal' 'no terminal'

open "NO_COLOR=1 $demo --speed 30 --tasks 1"
wait_for 'finished' 'NO_COLOR'
if tm capture-pane -p -e -t t | grep -q "$(printf '\033')\[[0-9;]*3[1-7]m"; then
    echo 'not ok: NO_COLOR: there are colours'
    failed=1
fi
keys q
wait_for 'ended with 0' 'left'

# A search that is really running.
open "$live 20000"
wait_for 'exploring' 'a live session'
keys p
wait_for 'paused' 'p pauses'
keys p
wait_for 'running' 'p goes on'
keys Z
wait_for 'view frozen' 'Z freezes the view'
sleep 1
keys Z
wait_for 'measuring #' 'Z thaws it'
keys s
wait_for 'with what it has so far?  y yes' 's asks'
keys s
wait_for 'is not skipped' 'a doubled key does not confirm'
keys s y
wait_for 'skipping task' 'y does'
keys 1 g ']' ']'
wait_for '92 trials of refinement for task' '] adds to the budget of a task, each time'
keys b
wait_for 'now refine 60, explore 60' 'b asks for a budget'
keys 'explore 9' Enter
wait_for '9 trials of exploration for each task' 'and changes it'
wait_for '/92' 'the task that refines has the new one'
keys b 'trials many' Enter
wait_for 'is no budget; say' 'what is none is told'
keys q
wait_for 'y yes  n no' 'q asks while a search is running'
keys y
wait_for 'session interrupted' 'and stops it'
wait_for 'ended with 0' 'stopped'
restored 'q y'

open "$live 3000000"
wait_for 'measuring #1' 'a long measurement'
keys C-c
wait_for 'stopping' 'Ctrl-C stops after the measurement'
keys C-c
wait_for 'session interrupted' 'twice: without waiting'
restored 'Ctrl-C twice'

open "$live 100"
wait_for 'finished' 'a session comes to its end'
keys Tab Enter Escape q
wait_for 'session finished' 'and is left at once'

[ $failed -eq 0 ] && echo 'ok: all'
exit $failed
