/* SPDX-License-Identifier: Apache-2.0 */
#include "sessions/private.h"

/*
 * A task's stages follow the rules of the board (engine/tune/board.c): a stage is the best trial at
 * its end, measured anew by the final. default_ns, explored_ns, refined_ns of `task` are NULL until
 * then.
 *
 * Views use no function that SQLite holds for unsafe in a stranger's schema, json_extract() among
 * them: sessions are read with PRAGMA trusted_schema off. The list of samples is cut out of the
 * body instead; inside a JSON text a quote is escaped, so that its name is found nowhere else.
 */
const char *const schema_sql[] = {
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;",

    "CREATE TABLE events(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, wall_ns INTEGER NOT NULL,\n"
    "  t_ns INTEGER NOT NULL, task INTEGER NOT NULL, trial INTEGER NOT NULL, body TEXT NOT NULL);",
    "CREATE INDEX events_command ON events(seq) WHERE kind = 'command';",

    "CREATE TABLE task(id INTEGER PRIMARY KEY, name TEXT NOT NULL, workload TEXT, where_ TEXT,\n"
    "  kind TEXT, weight REAL, flops REAL, bytes REAL, space REAL, phase TEXT DEFAULT 'waiting',\n"
    "  strategy TEXT, default_trial INTEGER, best_trial INTEGER, best_cost_ns REAL,\n"
    "  explored_trial INTEGER, refined_trial INTEGER, default_ns REAL, explored_ns REAL,\n"
    "  refined_ns REAL, result_after INTEGER);",

    "CREATE TABLE trial(id INTEGER PRIMARY KEY, task INTEGER NOT NULL, strategy TEXT, phase TEXT,\n"
    "  sketch TEXT, knobs TEXT, code TEXT, origin TEXT, parent INTEGER, knob INTEGER,\n"
    "  dir INTEGER, step TEXT, status TEXT NOT NULL DEFAULT 'pending',\n"
    "  measuring INTEGER NOT NULL DEFAULT 0, reason TEXT, cost_ns REAL, median_ns REAL,\n"
    "  samples INTEGER, checked INTEGER, error REAL, build_ns INTEGER, measure_ns INTEGER,\n"
    "  code_bytes INTEGER, started_ns INTEGER, ended_ns INTEGER, ended_wall_ns INTEGER,\n"
    "  ended_seq INTEGER, against INTEGER, p_value REAL, gain REAL, verdict TEXT, decision TEXT);",
    "CREATE INDEX trial_rank ON trial(task, median_ns) WHERE status = 'ok';",

    "CREATE VIEW trials AS SELECT t.id AS id, coalesce(k.name, t.task) AS task,\n"
    "  t.strategy AS strategy, t.phase AS phase, t.sketch AS sketch, t.knobs AS knobs,\n"
    "  t.status AS status, t.reason AS reason, t.median_ns AS median_ns, t.samples AS samples,\n"
    "  t.parent AS parent, t.started_ns / 1e9 AS started, t.ended_ns / 1e9 AS ended,\n"
    "  t.cost_ns AS cost_ns, t.code AS code, t.origin AS origin, t.p_value AS p_value,\n"
    "  t.gain AS gain, t.verdict AS verdict, t.decision AS decision, t.error AS error,\n"
    "  t.build_ns AS build_ns, t.measure_ns AS measure_ns, t.code_bytes AS code_bytes,\n"
    "  t.step AS step,\n"
    "  strftime('%Y-%m-%dT%H:%M:%fZ', t.ended_wall_ns / 1e9, 'unixepoch') AS ended_at,\n"
    "  (SELECT substr(tail, 1, instr(tail, ']')) FROM (SELECT substr(e.body,\n"
    "    instr(e.body, '\"sample_ns\":') + 12) AS tail FROM events e WHERE e.seq = t.ended_seq))\n"
    "    AS sample_ns\n"
    "  FROM trial t LEFT JOIN task k ON k.id = t.task WHERE t.ended_seq IS NOT NULL;",

    "CREATE VIEW in_flight AS SELECT t.id AS id, coalesce(k.name, t.task) AS task,\n"
    "  t.strategy AS strategy, t.phase AS phase, t.sketch AS sketch, t.knobs AS knobs,\n"
    "  CASE WHEN t.measuring THEN 'measuring' ELSE 'proposed' END AS state\n"
    "  FROM trial t LEFT JOIN task k ON k.id = t.task WHERE t.ended_seq IS NULL;",

    "CREATE VIEW tasks AS\n"
    "  WITH stage AS (SELECT k.*,\n"
    "      coalesce(k.default_ns, (SELECT median_ns FROM trial WHERE id = k.default_trial)) AS d,\n"
    "      coalesce(k.explored_ns, (SELECT median_ns FROM trial WHERE id = k.explored_trial)) AS "
    "x,\n"
    "      coalesce(k.refined_ns, (SELECT median_ns FROM trial WHERE id = k.refined_trial)) AS r\n"
    "    FROM task k),\n"
    "  ended AS (SELECT task, count(*) AS n FROM trial WHERE ended_seq IS NOT NULL GROUP BY task)\n"
    "  SELECT s.name AS name, s.workload AS workload, s.weight AS weight, s.phase AS phase,\n"
    "    s.d AS default_ns, s.x AS explored_ns, s.r AS refined_ns,\n"
    "    CASE WHEN s.flops > 0 THEN s.flops / coalesce(s.r, s.x, s.d) END AS gflops,\n"
    "    coalesce(e.n, 0) AS trials, s.d / coalesce(s.r, s.x, s.d) AS speedup,\n"
    "    s.where_ AS where_, s.kind AS kind\n"
    "  FROM stage s LEFT JOIN ended e ON e.task = s.id ORDER BY s.id;",

    "CREATE VIEW leaderboard AS SELECT k.name AS task,\n"
    "  row_number() OVER (PARTITION BY t.task ORDER BY t.median_ns, t.id) AS rank, t.id AS trial,\n"
    "  t.median_ns AS median_ns,\n"
    "  CASE WHEN k.flops > 0 THEN k.flops / t.median_ns END AS gflops,\n"
    "  coalesce(k.default_ns, (SELECT median_ns FROM trial WHERE id = k.default_trial))\n"
    "    / t.median_ns AS speedup,\n"
    "  t.sketch AS sketch, t.knobs AS knobs\n"
    "  FROM trial t JOIN task k ON k.id = t.task\n"
    "  WHERE t.status = 'ok' AND t.origin IS NOT 'final' ORDER BY t.task, t.median_ns, t.id;",

    "CREATE VIEW progress AS SELECT k.name AS task, t.id AS trial,\n"
    "  row_number() OVER w AS trials, t.ended_ns / 1e9 AS time, t.median_ns AS median_ns,\n"
    "  min(CASE WHEN t.status = 'ok' THEN t.median_ns END) OVER w AS best_ns\n"
    "  FROM trial t JOIN task k ON k.id = t.task WHERE t.ended_seq IS NOT NULL\n"
    "  WINDOW w AS (PARTITION BY t.task ORDER BY t.id);",

    "CREATE VIEW failures AS SELECT coalesce(k.name, t.task) AS task, t.status AS status,\n"
    "  t.reason AS reason, count(*) AS count, min(t.id) AS example\n"
    "  FROM trial t LEFT JOIN task k ON k.id = t.task\n"
    "  WHERE t.status NOT IN ('ok', 'cut', 'pending')\n"
    "  GROUP BY t.task, t.status, t.reason ORDER BY t.task, count(*) DESC;",
    NULL,
};
