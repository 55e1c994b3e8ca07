# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# For the scripts beside this: what the machine is, and whether it is quiet. They set $source, the
# repository, and $build, meson's folder; they get $squall, the program, and $busy.

say() { echo "${0##*/}: $*" >&2; }

load_average() { cut -d ' ' -f 1 /proc/loadavg; }

# Percent of the cores' time that others take, over a second in which this script does nothing.
# What the host of a virtual machine takes ("steal") counts.
machine_busy() {
    {
        head -n 1 /proc/stat
        sleep 1
        head -n 1 /proc/stat
    } | awk '{ idle = $5 + $6; all = 0; for (i = 2; i <= 9; i++) all += $i }
             NR == 1 { idle0 = idle; all0 = all }
             END { if (all > all0) printf "%.0f\n", 100 - 100 * (idle - idle0) / (all - all0)
                   else print 0 }'
}

# Above these nothing is measured: a program that is runnable half of the time, or a tenth of the
# cores' time gone.
load_limit=0.5
busy_limit=10

# machine_need_quiet FORCE: leaves the script on a busy machine, or warns if FORCE is not empty.
machine_need_quiet() {
    load=$(load_average)
    busy=$(machine_busy)
    if [ "$busy" -le "$busy_limit" ] &&
        awk -v a="$load" -v b="$load_limit" 'BEGIN { exit a > b }'; then
        return
    fi
    say "this machine is busy: load average $load, $busy % of the cores' time taken by others"
    if [ -z "$1" ]; then
        say "wait until it is quiet, or measure all the same with -f"
        exit 1
    fi
    say "FIGURES OF THIS RUN SAY LITTLE: -f was given"
}

# Before each measurement: the load average still shows this script's own work, so only the second
# counts. Waits for up to a minute; then the measurement is made, with $busy beside it.
machine_wait_quiet() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        busy=$(machine_busy)
        if [ "$busy" -le "$busy_limit" ] || [ -n "$1" ]; then
            break
        fi
        sleep 5
    done
    [ "$busy" -le "$busy_limit" ] || say "busy: $busy % of the cores' time is taken by others"
}

cpu_field() { lscpu | sed -n "s/^$1: *//p" | head -n 1; }

machine_print() {
    echo "machine   $(cpu_field 'Model name'), $(nproc) cores, L2 $(cpu_field 'L2 cache')," \
        "L3 $(cpu_field 'L3 cache')$(cpu_field 'Hypervisor vendor' | sed 's/^/, virtual: /')"
    echo "system    $(uname -srm), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
    echo "load      $(cut -d ' ' -f 1-3 /proc/loadavg) at $(date -u '+%Y-%m-%d %H:%M UTC')"
    echo "program   $("$squall" --version), commit $(git -C "$source" describe --always --dirty \
        2>/dev/null || echo unknown)"
}

# build_find FOLDER TARGET...: builds, sets $squall unless SQUALL names another.
build_find() {
    build=$1
    shift
    if [ ! -f "$build/build.ninja" ]; then
        meson setup "$build" "$source" "$@" >&2 || return 1
    fi
    squall=${SQUALL:-}
    if [ -z "$squall" ]; then
        meson compile -C "$build" squall >&2 || return 1
        squall=$build/ui/squall
    fi
}

# tune_session NAME FILE LOG EXPLORE REFINE THREADS: begins the session or goes on with it; one that
# is finished ends at once. Fails where tuning does, and says why.
tune_session() {
    if [ -f "$2" ]; then
        "$squall" resume "$2" --batch >>"$3" 2>&1 # budgets of a task stay
    else
        say "$1, threads $6: $4 + $5 trials a task, into $2"
        "$squall" tune "$1" --batch --explore "$4" --refine "$5" --threads "$6" --session "$2" \
            >>"$3" 2>&1
    fi && return
    tail -n 3 "$3" >&2
    say "$1: tuning ended early; $3 has the rest, and the same command goes on with it"
    return 1
}
