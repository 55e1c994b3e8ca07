/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/search/strategy.h"
#include "engine/search/trees.h"
#include "scripts/lua_model.h"

enum option_id {
    OPT_SESSION = 256, OPT_TARGET, OPT_TRIALS, OPT_EXPLORE, OPT_REFINE, OPT_TIME, OPT_STRATEGY,
    OPT_SEED, OPT_JOBS, OPT_THREADS, OPT_CACHE, OPT_LAYOUT, OPT_MODEL, OPT_LEARN, OPT_TASK, OPT_BATCH,
    OPT_JSON, OPT_COLOR, OPT_ASCII,
    OPT_BRAILLE, OPT_SPEED, OPT_TAKE_OVER, OPT_SHAPE, OPT_CONSTRAINT, OPT_CONSTRAINTS,
    OPT_OBJECTIVE, OPT_MAXIMISE, OPT_MINIMISE, OPT_HELP,
};

static const struct option long_options[] = {
    {"session", required_argument, NULL, OPT_SESSION},
    {"target", required_argument, NULL, OPT_TARGET},
    {"trials", required_argument, NULL, OPT_TRIALS},
    {"explore", required_argument, NULL, OPT_EXPLORE},
    {"refine", required_argument, NULL, OPT_REFINE},
    {"time", required_argument, NULL, OPT_TIME},
    {"strategy", required_argument, NULL, OPT_STRATEGY},
    {"seed", required_argument, NULL, OPT_SEED},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"cache", required_argument, NULL, OPT_CACHE},
    {"layout", required_argument, NULL, OPT_LAYOUT},
    {"cost-model", required_argument, NULL, OPT_MODEL},
    {"learn-from", required_argument, NULL, OPT_LEARN},
    {"task", required_argument, NULL, OPT_TASK},
    {"batch", no_argument, NULL, OPT_BATCH},
    {"json", no_argument, NULL, OPT_JSON},
    {"color", required_argument, NULL, OPT_COLOR},
    {"ascii", no_argument, NULL, OPT_ASCII},
    {"braille", no_argument, NULL, OPT_BRAILLE},
    {"speed", required_argument, NULL, OPT_SPEED},
    {"take-over", no_argument, NULL, OPT_TAKE_OVER},
    {"shape", required_argument, NULL, OPT_SHAPE},
    {"constraint", required_argument, NULL, OPT_CONSTRAINT},
    {"constraints", required_argument, NULL, OPT_CONSTRAINTS},
    {"objective", required_argument, NULL, OPT_OBJECTIVE},
    {"maximise", no_argument, NULL, OPT_MAXIMISE},
    {"minimise", no_argument, NULL, OPT_MINIMISE},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool takes(const struct command *c, int id)
{
    bool tunes = c->run == cmd_tune || c->run == cmd_resume;
    switch (id) {
    case OPT_BATCH:
    case OPT_JSON:
    case OPT_COLOR:
    case OPT_ASCII:
    case OPT_BRAILLE:
        return tunes || c->run == cmd_replay || c->run == cmd_attach;
    case OPT_EXPLORE:
    case OPT_REFINE:
    case OPT_TRIALS:
    case OPT_TIME:
        return tunes;
    case OPT_THREADS:
        return c->run == cmd_tune || c->run == cmd_devices;
    case OPT_SPEED:
        return tunes || c->run == cmd_replay;
    case OPT_CONSTRAINT:
    case OPT_CONSTRAINTS:
    case OPT_OBJECTIVE:
    case OPT_MAXIMISE:
    case OPT_MINIMISE:
        return c->run == cmd_tune || c->run == cmd_space;
    case OPT_TAKE_OVER:
        return c->run == cmd_resume;
    default:
        return c->run == cmd_tune;
    }
}

static const char *wants(int id)
{
    switch (id) {
    case OPT_TIME:
        return "seconds";
    case OPT_SPEED:
        return "a number from 0";
    case OPT_JOBS:
        return "a number from 0 to 256";
    case OPT_THREADS:
        return "a number from 1 to 1024";
    case OPT_COLOR:
        return "auto, always or never";
    case OPT_CACHE:
        return "auto, warm or cold";
    case OPT_LAYOUT:
        return "auto, blocked or plain";
    case OPT_MODEL:
        return trees_missing() ? "none: this squall was built without XGBoost" : "trees or none";
    default:
        return "a whole number from 0";
    }
}

void cli_error(const struct err *e)
{
    fprintf(stderr, "squall: %s\n", e->msg[0] ? e->msg : err_text(e->code));
}

static int usage_error(const struct command *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int usage_error(const struct command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "squall %s: ", c->name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see squall %s --help\n", c->name);
    va_end(ap);
    return EXIT_USAGE;
}

static bool read_count(const char *text, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < 0 || v > max)
        return false;
    *out = v;
    return true;
}

static bool read_real(const char *text, double *out)
{
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(v) || v < 0)
        return false;
    *out = v;
    return true;
}

static void print_help(const struct command *c)
{
    printf("usage: squall %s [options]%s%s\n\n%s\n", c->name, c->arguments ? " " : "",
           c->arguments ? c->arguments : "", c->summary);
    if (c->help)
        printf("\n%s", c->help);
    if (c->run == cmd_tune) {
        printf("\nInputs: a model.onnx, a network.lua, or one of\n");
        for (int i = 0; lua_model_name(i); i++)
            printf("  %-14s %s\n", lua_model_name(i), lua_model_summary(i));
        printf("\nor a workload by name:\n%s\nStrategies:\n", model_named_workloads_help());
        for (int i = 0; strategy_at(i); i++)
            printf("  %-14s %s\n", strategy_at(i)->name, strategy_at(i)->summary);
    }
}

static int set_strategy(struct tune_options *t, const char *name)
{
    if (!strategy_find(name))
        return -1;
    if (strcmp(name, "droplet") == 0)
        strcpy(t->explore_strategy, "none");
    else
        snprintf(t->explore_strategy, sizeof t->explore_strategy, "%s", name);
    return 0;
}

static int set_option(const struct command *c, int id, const char *name, const char *arg,
                      struct cli_options *o)
{
    int64_t n = 0;
    bool ok = true;
    if (!takes(c, id))
        return usage_error(c, "there is no option --%s", name);
    switch (id) {
    case OPT_SESSION:
        o->session = arg;
        break;
    case OPT_TARGET:
        o->target = arg;
        break;
    case OPT_TRIALS:
        o->given_trials = true;
        ok = read_count(arg, INT32_MAX, &o->tune.trials);
        break;
    case OPT_EXPLORE:
        o->given_explore = true;
        ok = read_count(arg, INT32_MAX, &o->tune.explore);
        break;
    case OPT_REFINE:
        o->given_refine = true;
        ok = read_count(arg, INT32_MAX, &o->tune.refine);
        break;
    case OPT_TIME:
        o->given_time = true;
        ok = read_real(arg, &o->tune.seconds);
        break;
    case OPT_STRATEGY:
        if (set_strategy(&o->tune, arg))
            return usage_error(c, "there is no strategy \"%s\"", arg);
        o->given_strategy = true;
        break;
    case OPT_SEED:
        ok = read_count(arg, INT64_MAX, &n);
        o->tune.seed = (uint64_t)n;
        break;
    case OPT_JOBS:
        ok = read_count(arg, 256, &n);
        o->tune.jobs = (int)n;
        break;
    case OPT_THREADS:
        ok = read_count(arg, 1024, &n) && n > 0;
        o->threads = (int)n;
        break;
    case OPT_CACHE:
        ok = !strcmp(arg, "auto") || !strcmp(arg, "warm") || !strcmp(arg, "cold");
        o->cache = arg;
        break;
    case OPT_LAYOUT:
        ok = !strcmp(arg, "auto") || !strcmp(arg, "blocked") || !strcmp(arg, "plain");
        o->layout = arg;
        break;
    case OPT_MODEL:
        o->tune.cost_model = !strcmp(arg, "trees");
        ok = o->tune.cost_model ? !trees_missing() : !strcmp(arg, "none");
        break;
    case OPT_LEARN:
        if (o->nr_learn_from == CLI_MAX_INPUTS)
            return usage_error(c, "too many sessions to learn from");
        o->learn_from[o->nr_learn_from++] = arg;
        break;
    case OPT_TASK:
        o->task_glob = arg;
        break;
    case OPT_BATCH:
        o->batch = true;
        break;
    case OPT_JSON:
        o->json = true;
        break;
    case OPT_COLOR:
        ok = !strcmp(arg, "auto") || !strcmp(arg, "always") || !strcmp(arg, "never");
        o->color = arg;
        break;
    case OPT_ASCII:
        o->ascii = true;
        break;
    case OPT_BRAILLE:
        o->braille = true;
        break;
    case OPT_SPEED:
        o->given_speed = true;
        ok = read_real(arg, &o->speed);
        break;
    case OPT_TAKE_OVER:
        o->take_over = true;
        break;
    case OPT_CONSTRAINT:
        if (o->nr_constraints == CLI_MAX_INPUTS)
            return usage_error(c, "too many constraints; put them in a file: --constraints FILE");
        o->constraint[o->nr_constraints++] = arg;
        break;
    case OPT_CONSTRAINTS:
        o->constraints_file = arg;
        break;
    case OPT_OBJECTIVE:
        o->objective = arg;
        break;
    case OPT_MAXIMISE:
    case OPT_MINIMISE:
        o->direction = id == OPT_MAXIMISE ? 1 : -1;
        break;
    case OPT_SHAPE:
        ok = add_shape(arg, o->shapes, sizeof o->shapes);
        break;
    }
    return ok ? -1 : usage_error(c, "--%s wants %s, not \"%s\"", name, wants(id), arg);
}

static int add_input(const struct command *c, const char *text, struct cli_options *o)
{
    if (o->nr_inputs == CLI_MAX_INPUTS)
        return usage_error(c, "too many arguments, from \"%s\" on", text);
    o->input[o->nr_inputs++] = text;
    return -1;
}

int cli_parse(const struct command *c, int argc, char **argv, struct cli_options *o)
{
    *o = (struct cli_options){.target = "llvm", .threads = 1, .color = "auto", .cache = "auto",
                              .layout = "auto", .speed = 1};
    o->tune = (struct tune_options){.explore = 64, .refine = 64, .fill_ns = 4000000,
                                    .cost_model = !trees_missing(),
                                    .build_timeout_ns = 30000000000, .run_timeout_ns = 10000000000};
    strcpy(o->tune.explore_strategy, "evolutionary");
    strcpy(o->tune.refine_strategy, "droplet");
    optind = 0; /* not 1: starts anew, whoever parsed before */
    opterr = 0;
    int id, index = 0;
    /* '-': inputs come as options with the code 1, wherever they stand. */
    while ((id = getopt_long(argc, argv, "-:h", long_options, &index)) != -1) {
        int rc = -1;
        if (id == OPT_HELP || id == 'h') {
            print_help(c);
            return EXIT_DONE;
        }
        if (id == ':')
            return usage_error(c, "%s wants a value", argv[optind - 1]);
        if (id == '?')
            return usage_error(c, "there is no option %s", argv[optind - 1]);
        if (id == 1)
            rc = add_input(c, optarg, o);
        else
            rc = set_option(c, id, long_options[index].name, optarg, o);
        if (rc >= 0)
            return rc;
    }
    for (; optind < argc; optind++) {
        int rc = add_input(c, argv[optind], o);
        if (rc >= 0)
            return rc;
    }
    return -1;
}

bool cli_wants_screen(const struct cli_options *o)
{
    const char *term = getenv("TERM");
    return !o->batch && !o->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term &&
           *term && strcmp(term, "dumb") != 0;
}
