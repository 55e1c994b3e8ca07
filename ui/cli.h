/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line: the options that commands share, and the table of commands.
 * Exit codes: 0 done, 1 failed with a sentence on stderr, 2 wrong usage, 130 interrupted with the
 * session resumable.
 */
#ifndef UI_CLI_H
#define UI_CLI_H

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/model/task.h"
#include "engine/tune/conductor.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

enum { CLI_MAX_INPUTS = 64 };

struct cli_options {
    struct tune_options tune;
    const char *session;     /* NULL: a new file under $XDG_DATA_HOME/squall */
    const char *target;      /* "llvm" or "llvm:cpu=NAME" */
    int threads;             /* of the kernels */
    const char *learn_from[CLI_MAX_INPUTS]; /* sessions */
    int nr_learn_from;
    const char *task_glob;   /* NULL: all */
    bool batch, json;        /* neither: the workbench on a terminal, else batch */
    const char *color;       /* "auto", "always", "never" */
    const char *cache;       /* "auto", "warm", "cold": where constants are when a kernel is called */
    const char *layout;      /* "auto", "blocked", "plain": how activations flow */
    const char *flow;        /* what came of it (flow.h); NULL: by the rule */
    bool ascii, braille, take_over;
    bool given_trials, given_time, given_explore, given_refine, given_speed,
        given_strategy;      /* on the command line */
    struct tune_command change[4]; /* of `resume`: the budgets among these */
    int nr_changes;
    double speed;            /* of a replay: 1 as it was, 0 at once */
    int nr_inputs;
    const char *input[CLI_MAX_INPUTS];
    char shapes[1024];       /* one a line, as in engine/model/model.h */
    /* of recorded spaces */
    int nr_constraints;
    const char *constraint[CLI_MAX_INPUTS], *constraints_file;
    const char *objective;   /* NULL: the file's */
    int direction;           /* > 0 to be maximised, < 0 minimised, 0 by its name */
};

struct command {
    const char *name, *arguments, *summary; /* arguments NULL: it takes none */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; the exit code */
    const char *help;                  /* further lines of --help; NULL for none */
};

/* Keys of a session: what it takes to find the same tasks again. */
#define KEY_INPUTS "inputs" /* one a line */
#define KEY_TARGET "target"
#define KEY_THREADS "threads"
#define KEY_TASK_GLOB "task-glob"
#define KEY_SHAPES "shapes" /* one a line */
#define KEY_LAYOUT "layout" /* flow.h; older sessions have none */
#define KEY_CONSTRAINTS "constraints" /* one a line */
#define KEY_RECORD "record" /* of an imported session: all that was imported, as T4 text */
#define KEY_OBJECTIVE "objective"
#define KEY_DIRECTION "direction" /* "max" or "min" */

extern const struct command commands[];
const struct command *command_find(const char *name);

/* Reads the shared options; what is left goes to input[]. 0, or the exit code to leave with after
 * help or a usage error was printed; -1 to go on. */
int cli_parse(const struct command *c, int argc, char **argv, struct cli_options *o);

/* Prints "squall: <sentence>" on stderr. */
void cli_error(const struct err *e);

/* Should this run open the workbench? */
bool cli_wants_screen(const struct cli_options *o);

struct graph;

/* The finished graph of an input, and the block to plan it with in place of the wished one; shapes as
 * in engine/model/model.h, or NULL. NULL and a sentence; graph_free(). */
struct graph *input_graph(const char *input, const char *shapes, int *block, struct err *e);

/* The tasks of the inputs: ONNX files, Lua networks, named workloads. `block` as model.h. */
int load_inputs(const struct cli_options *o, int block, struct task_list *out, struct err *e);

/* Adds an argument of --shape to the lines of shapes; false where it is none, or they are too many. */
bool add_shape(const char *text, char *shapes, size_t size);

/* Keeps the tasks whose names are like `glob`. */
int select_tasks(struct task_list *l, const char *glob, struct err *e);

/* Does the file begin as a session does? */
bool input_is_session(const char *path);

/* Is it a file (to be hashed and stored by its full path)? */
bool input_is_file(const char *input);

int cmd_tune(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_space(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_compile(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_check(int argc, char **argv);

#endif
