#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded spaces as their user meets them: space, tune, resume, export, import.
usage: recorded_cli.py SQUALL"""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SQUALL = os.path.abspath(sys.argv[1])


def run(*args, code=0):
    p = subprocess.run([SQUALL, *args], capture_output=True, text=True, timeout=120)
    assert p.returncode == code, (args, p.returncode, p.stdout[-2000:], p.stderr)
    return p.stdout, p.stderr


def cachefile(path, closed=True):
    """A bowl over bx, by; by 8 did not run; with pad 1 only where bx is odd."""
    keys = ['bx', 'by', 'pad']
    domains = {'bx': list(range(1, 17)), 'by': [1, 2, 4, 8], 'pad': [0, 1]}
    text = json.dumps({'device_name': 'ACME', 'kernel_name': 'bowl', 'problem_size': 64,
                       'tune_params_keys': keys, 'tune_params': domains, 'objective': 'time',
                       'cache': {}}, indent='')[:-len('}\n}')]
    rows = []
    for bx in domains['bx']:
        for by in domains['by']:
            for pad in domains['pad']:
                if pad and bx % 2 == 0:
                    continue
                t = 1 + 0.05 * (bx - 9) ** 2 + 0.1 * abs(by - 2) + 0.01 * pad
                row = {'bx': bx, 'by': by, 'pad': pad,
                       'time': 'RuntimeFailedConfig' if by == 8 else t}
                if by != 8:
                    row['times'] = [t * f for f in (1.2, 1, 0.999, 1.001, 1.002)]
                row.update(compile_time=900.5, verification_time=0, benchmark_time=99.5,
                           strategy_time=0, framework_time=0, **{'GB/s': 3 / t},
                           timestamp='2026-01-02 03:04:05.000001+00:00')
                rows.append('\n"%d,%d,%d": %s' % (bx, by, pad, json.dumps(row)))
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text + ','.join(rows) + ('}\n}' if closed else ',\n"1,1'))
    return len(rows)


def trials(session):
    out, _ = run('export', session, '--format', 'json')
    return json.loads(out)['rows']


def test_space(path, nr):
    out, _ = run('space', path)
    assert 'recorded  %d configurations: %d correct %d runtime' % (nr, nr * 3 // 4, nr // 4) in out
    assert 'best 1,' in out and 'bx=9 by=2 pad=0' in out
    out, _ = run('space', path, '--constraint', 'pad == 0 or bx % 2 == 1')
    assert 'product              128' in out and '%d  0 of the recorded' % nr in out
    assert '%14d%14d  pad == 0 or bx %% 2 == 1' % (32, 32) in out
    _, err = run('space', path, '--constraint', 'pad === 0', code=1)
    assert 'character' in err and 'pad === 0' in err
    out, _ = run('space', path, '--objective', 'GB/s')
    assert 'GB/s, maximised: best 3,' in out


def test_tune_and_resume(path, tmp):
    whole, cut = os.path.join(tmp, 'whole.squall'), os.path.join(tmp, 'cut.squall')
    options = ['--batch', '--explore', '24', '--refine', '24', '--seed', '3']
    out, err = run('tune', path, '--session', whole, *options)
    assert 'bowl' in out or 'made' in out
    best = min(r['value'] for r in trials(whole) if r['status'] == 'correct')
    assert abs(best - 1) < 1e-9, best
    # A second a configuration, ten times as fast: it is stopped on the way.
    p = subprocess.Popen([SQUALL, 'tune', path, '--session', cut, *options, '--speed', '10'],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.5)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    assert p.returncode == 130, p.returncode
    assert len(trials(cut)) < len(trials(whole))
    run('resume', cut, '--batch')
    assert [r['knobs'] for r in trials(cut)] == [r['knobs'] for r in trials(whole)]
    # Virtual seconds.
    timed = os.path.join(tmp, 'timed.squall')
    out, _ = run('tune', path, '--session', timed, '--batch', '--strategy', 'random', '--explore',
                 '60', '--refine', '0', '--time', '20')
    assert '20 seconds used' in out


def decided(session):
    """What was decided, event by event: without the clock, and without what threads reported when."""
    db = sqlite3.connect(session)
    rows = [json.loads(b) for (b,) in db.execute(
        "SELECT body FROM events WHERE kind IN ('phase', 'proposed', 'trial', 'decision', 'incumbent', "
        "'result') ORDER BY seq")]
    db.close()
    clocks = ('seq', 'wall_ns', 't_ns', 'build_ns', 'measure_ns', 'started_ns', 'ended_ns')
    events = [{k: v for k, v in r.items() if k not in clocks} for r in rows]
    trials = [e for e in events if e['event'] in ('proposed', 'trial')]
    trials.sort(key=lambda e: (e['trial'], e['event']))
    return trials + [e for e in events if e['event'] not in ('proposed', 'trial')]


def test_equal_seeds_decide_equally(path, tmp):
    runs = []
    for i, (seed, jobs) in enumerate([(5, 1), (5, 4), (6, 1)]):
        session = os.path.join(tmp, 'seed%d.squall' % i)
        run('tune', path, '--session', session, '--batch', '--explore', '32', '--refine', '32',
            '--seed', str(seed), '--jobs', str(jobs))
        runs.append(decided(session))
    assert len(runs[0]) > 100, len(runs[0])
    for a, b in zip(runs[0], runs[1]):
        assert a == b, (a, b)
    assert len(runs[0]) == len(runs[1])
    assert runs[0] != runs[2]


def test_budgets_grown_at_once_and_by_parts(path, tmp):
    """A finished session with larger budgets: stopped on the way by a limit, it decides the same."""
    once, parts = os.path.join(tmp, 'once.squall'), os.path.join(tmp, 'parts.squall')
    for strategy in ('forest', 'evolutionary'):
        for session in (once, parts):
            if os.path.exists(session):
                os.remove(session)
            run('tune', path, '--session', session, '--batch', '--explore', '16', '--refine', '8',
                '--seed', '2', '--strategy', strategy)
        first = trials(once)
        more = ['--explore', '24', '--refine', '12', '--batch']
        run('resume', once, *more)
        run('resume', parts, *more, '--trials', str(len(first) + 5))
        assert len(trials(parts)) == len(first) + 5
        run('resume', parts, '--trials', '0', '--batch')
        assert trials(once)[:len(first)] == first
        assert [r['knobs'] for r in trials(parts)] == [r['knobs'] for r in trials(once)]
        assert len(trials(once)) > 24 + 8


def test_export_and_import(path, tmp, nr):
    t4, session, back = (os.path.join(tmp, n) for n in ('a.json', 'i.squall', 'b.json'))
    run('export', path, '-o', t4)
    doc = json.load(open(t4, encoding='utf-8'))
    assert doc['schema_version'] == '1.0.0' and len(doc['results']) == nr
    first = doc['results'][0]
    assert first['times']['compilation'] == 900.5 and len(first['times']['runtimes']) == 5
    assert {r['invalidity'] for r in doc['results']} == {'correct', 'runtime'}
    run('import', t4, '-o', session)
    out, _ = run('show', session)
    assert 'finished' in out
    run('import', t4, '-o', session, code=1)  # it is there already
    run('export', session, '-o', back)
    assert json.load(open(back, encoding='utf-8')) == doc
    out, _ = run('export', path, '--format', 'csv')
    lines = out.splitlines()
    assert lines[0].startswith('bx,by,pad,status,time,cost_s,reason') and len(lines) == nr + 1
    kt = os.path.join(tmp, 'kt.json')
    run('export', path, '--format', 'kt', '-o', kt)
    again = json.load(open(kt, encoding='utf-8'))
    assert again['tune_params_keys'] == ['bx', 'by', 'pad'] and len(again['cache']) == nr
    assert again['cache']['1,8,0']['time'] == 'RuntimeFailedConfig'
    for option in ('explore', 'refine'):
        _, err = run('resume', session, '--' + option, '2000', '--batch', code=2)
        assert 'does not ' + option in err, err
    run('export', path, '--format', 'xml', code=2)
    run('export', os.path.join(tmp, 'nothing.json'), code=1)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'made.json')
        nr = cachefile(path)
        test_space(path, nr)
        test_tune_and_resume(path, tmp)
        test_equal_seeds_decide_equally(path, tmp)
        test_budgets_grown_at_once_and_by_parts(path, tmp)
        test_export_and_import(path, tmp, nr)
        torn = os.path.join(tmp, 'torn.json')
        assert cachefile(torn, closed=False) == nr
        out, _ = run('space', torn)
        assert '1 row could not be read' in out and 'ends without its end' in out


if __name__ == '__main__':
    main()
