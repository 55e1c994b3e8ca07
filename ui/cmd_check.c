/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `check`: folders of ONNX's test suite through compiled kernels.
 *
 * Each case runs in a child of its own, which builds and calls its kernels and writes one line of
 * what came of it: a kernel that crashes or hangs is a failed case, and the next one goes on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "engine/base/clock.h"
#include "engine/base/strbuf.h"
#include "engine/model/conformance.h"
#include "ui/check_kernels.h"
#include "ui/cli.h"
#include "ui/table.h"

enum { MAX_DEPTH = 8, CASE_SECONDS = 120 };

struct check_case {
    char *folder, *name, *reason;
    char op[48];
    enum conformance_status status;
};

struct check {
    const char *target_name;
    char shapes[1024];
    int samples;
    uint64_t seed;
    bool interpret, json;
    const struct backend *backend;
    struct target *target;
    struct check_case *c;
    int nr, cap;
};

static const char help_head[] =
    "Folders hold cases, CASE/model.onnx and CASE/test_data_set_N/{input,output}_M.pb, at any depth.\n"
    "Each runs with plain layouts and with those of the target, with the default schedule and with\n"
    "random ones; outputs may be off by 1e-7 + 0.001 of what is expected.\n"
    "\n"
    "  --samples N      random schedules a case (2)\n"
    "  --seed N         of these (0)\n"
    "  --interpret      the interpreter of the operators instead of compiled kernels\n"
    "  --target T       llvm, or llvm:cpu=NAME\n"
    "  --shape NAME=1x3x224x224   sizes that a model leaves free; those of the data otherwise\n"
    "  --json           an object instead of the table\n"
    "\n"
    "Exit code 1 where a case failed. Operators, of float32 and where it makes sense of int32, int64\n"
    "and bool:\n";

static void print_help(const struct command *c)
{
    printf("usage: squall %s [options] %s\n\n%s\n\n%s", c->name, c->arguments, c->summary, help_head);
    int col = 0;
    for (const char *p = graph_operators(); *p;) {
        int len = (int)strcspn(p, " ");
        if (!col || col + 1 + len > 98)
            col = printf("%s  %.*s", col ? "\n" : "", len, p) - (col ? 1 : 0);
        else
            col += printf(" %.*s", len, p);
        p += len + (p[len] == ' ');
    }
    printf("\n");
}

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("squall check: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("; see squall check --help\n", stderr);
    va_end(ap);
    return EXIT_USAGE;
}

static bool read_number(const char *text, long long max, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *out >= 0 && *out <= max;
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct check *k)
{
    static const struct option options[] = {
        {"samples", required_argument, NULL, 'n'}, {"seed", required_argument, NULL, 's'},
        {"interpret", no_argument, NULL, 'i'},     {"target", required_argument, NULL, 't'},
        {"shape", required_argument, NULL, 'a'},   {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    int c;
    long long n = 0;
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        switch (c) {
        case 'n':
            if (!read_number(optarg, 1000, &n))
                return usage("option --samples does not take \"%s\"", optarg);
            k->samples = (int)n;
            break;
        case 's':
            if (!read_number(optarg, INT64_MAX, &n))
                return usage("option --seed does not take \"%s\"", optarg);
            k->seed = (uint64_t)n;
            break;
        case 'i':
            k->interpret = true;
            break;
        case 't':
            k->target_name = optarg;
            break;
        case 'a':
            if (!add_shape(optarg, k->shapes, sizeof k->shapes))
                return usage("option --shape wants NAME=1x3x224x224, not \"%s\"", optarg);
            break;
        case 'j':
            k->json = true;
            break;
        case 'h':
            print_help(command_find("check"));
            return EXIT_DONE;
        case ':':
            return usage("option %s wants a value", argv[optind - 1]);
        default:
            return usage("unknown option %s", argv[optind - 1]);
        }
    }
    return optind < argc ? -1 : usage("wants a folder of ONNX test cases");
}

/* ---- which cases ---- */

static void add_case(struct check *k, const char *folder, const char *name)
{
    GROW(k->c, k->nr, k->cap);
    struct check_case *c = &k->c[k->nr++];
    *c = (struct check_case){.folder = xstrdup(folder), .name = xstrdup(name)};
    conformance_operator(folder, c->op, sizeof c->op);
}

/* Cases in `folder` and below, by name; `name` is what is shown of it. */
static int find_cases(struct check *k, const char *folder, const char *name, int depth,
                      struct err *e)
{
    if (conformance_is_case(folder)) {
        add_case(k, folder, *name ? name : folder);
        return 0;
    }
    struct dirent **entry = NULL;
    int n = depth < MAX_DEPTH ? scandir(folder, &entry, NULL, alphasort) : 0;
    if (n < 0)
        return depth ? 0 : err_set(e, ERR_IO, "cannot read folder \"%s\": %s", folder,
                                   strerror(errno));
    for (int i = 0; i < n; i++) {
        struct strbuf path = {0}, shown = {0};
        struct stat st;
        strbuf_addf(&path, "%s/%s", folder, entry[i]->d_name);
        strbuf_addf(&shown, "%s%s%s", name, *name ? "/" : "", entry[i]->d_name);
        if (entry[i]->d_name[0] != '.' && stat(strbuf_text(&path), &st) == 0 && S_ISDIR(st.st_mode))
            find_cases(k, strbuf_text(&path), strbuf_text(&shown), depth + 1, e);
        strbuf_release(&path);
        strbuf_release(&shown);
        free(entry[i]);
    }
    free(entry);
    return 0;
}

/* ---- one case ---- */

static enum conformance_status run_case(const struct check *k, const struct check_case *c,
                                        struct err *e)
{
    struct kernels kernels = {0};
    enum conformance_status status = CASE_PASSED;
    int block[] = {1, k->interpret ? 4 : k->backend->target_info(k->target)->lanes};
    if (!k->interpret && kernels_open(&kernels, k->backend, k->target, k->seed, e))
        return CASE_FAILED;
    for (int i = 0; i < 2 && status == CASE_PASSED; i++) {
        struct conformance how = {.folder = c->folder, .block = block[i], .shapes = k->shapes};
        how.runs = k->interpret ? 1 : 1 + k->samples;
        how.run = k->interpret ? NULL : kernels_run;
        how.runner.call = k->interpret ? plan_call_reference : kernels_call;
        how.runner.ctx = &kernels;
        status = conformance_run(&how, e);
        if (status == CASE_FAILED && block[i] > 1)
            err_prefix(e, "channel blocks of %d", block[i]);
    }
    kernels_close(&kernels);
    return status;
}

/* Waits for the child's line for as long as a case may take: false when that time is over. A child
 * that died closes its end of the pipe, maybe a moment before it can be waited for. */
static bool read_answer(int fd, struct strbuf *out)
{
    int64_t end = clock_mono_ns() + (int64_t)CASE_SECONDS * 1000000000;
    for (;;) {
        int64_t left_ms = (end - clock_mono_ns()) / 1000000;
        struct pollfd p = {fd, POLLIN, 0};
        int rc = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
        if (rc == 0)
            return false;
        if (rc < 0 && errno != EINTR)
            return true;
        char buf[2048];
        ssize_t n = rc > 0 ? read(fd, buf, sizeof buf) : -1;
        if (n == 0 || (n < 0 && rc > 0 && errno != EINTR))
            return true;
        if (n > 0)
            strbuf_add(out, buf, (size_t)n);
    }
}

static void child(const struct check *k, const struct check_case *c, int fd)
{
    struct err e = ERR_INIT;
    char line[sizeof e.msg + 2];
    int status = (int)run_case(k, c, &e);
    int n = snprintf(line, sizeof line, "%d%s", status, e.msg);
    for (int at = 0; at < n;) {
        ssize_t w = write(fd, line + at, (size_t)(n - at));
        if (w < 0 && errno != EINTR)
            break;
        at += w > 0 ? (int)w : 0;
    }
    _exit(0);
}

static int start_case(const struct check *k, struct check_case *c, struct err *e)
{
    int fd[2], status = 0;
    if (pipe2(fd, O_CLOEXEC))
        return err_set(e, ERR_IO, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(fd[0]);
        close(fd[1]);
        return err_set(e, ERR_IO, "cannot start a process: %s", strerror(errno));
    }
    if (pid == 0)
        child(k, c, fd[1]);
    close(fd[1]);
    struct strbuf answer = {0}, reason = {0};
    bool late = !read_answer(fd[0], &answer);
    close(fd[0]);
    if (late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->status = CASE_FAILED;
    if (answer.len && answer.buf[0] >= '0' && answer.buf[0] <= '2') {
        c->status = (enum conformance_status)(answer.buf[0] - '0');
        strbuf_adds(&reason, answer.buf + 1);
    } else if (late) {
        strbuf_addf(&reason, "took more than %d seconds", CASE_SECONDS);
    } else if (WIFSIGNALED(status)) {
        strbuf_addf(&reason, "crashed: %s", strsignal(WTERMSIG(status)));
    } else {
        strbuf_addf(&reason, "ended with code %d", WEXITSTATUS(status));
    }
    c->reason = xstrdup(strbuf_text(&reason));
    strbuf_release(&reason);
    strbuf_release(&answer);
    return 0;
}

/* ---- what came of it ---- */

struct counts {
    const char *op;
    int nr[3];
};

static int compare_counts(const void *a, const void *b)
{
    return strcmp(((const struct counts *)a)->op, ((const struct counts *)b)->op);
}

/* Of each operator, by name; the caller frees. */
static struct counts *count(const struct check *k, int *nr)
{
    struct counts *all = xcalloc((size_t)k->nr + 1, sizeof *all);
    *nr = 0;
    for (int i = 0; i < k->nr; i++) {
        int at = 0;
        while (at < *nr && strcmp(all[at].op, k->c[i].op) != 0)
            at++;
        if (at == *nr)
            all[(*nr)++].op = k->c[i].op;
        all[at].nr[k->c[i].status]++;
    }
    qsort(all, (size_t)*nr, sizeof *all, compare_counts);
    return all;
}

static void total(const struct check *k, int *nr)
{
    memset(nr, 0, 3 * sizeof *nr);
    for (int i = 0; i < k->nr; i++)
        nr[k->c[i].status]++;
}

/* The reason without the file's name, which is in the first column. */
static const char *short_reason(const struct check_case *c)
{
    const char *p = strstr(c->reason, "model.onnx\": ");
    return p ? p + strlen("model.onnx\": ") : c->reason;
}

static void print_reasons(const struct check *k, enum conformance_status status, const char *title,
                          struct strbuf *out)
{
    bool any = false;
    for (int i = 0; i < k->nr; i++) {
        const struct check_case *c = &k->c[i];
        if (c->status != status)
            continue;
        strbuf_addf(out, any ? "  " : "\n%s\n  ", title);
        any = true;
        print_text(out, c->name);
        strbuf_adds(out, ": ");
        print_text(out, short_reason(c));
        strbuf_addc(out, '\n');
    }
}

static void print_table(const struct check *k)
{
    static const struct table_column columns[] = {{"operator", false, 12, 0},
                                                  {"passed", true, 0, 0},
                                                  {"failed", true, 0, 0},
                                                  {"unsupported", true, 0, 0}};
    struct table t;
    struct strbuf out = {0};
    int nr, all[3];
    struct counts *c = count(k, &nr);
    table_init(&t, columns, 4);
    for (int i = 0; i < nr; i++) {
        table_cell(&t, c[i].op);
        for (int s = 0; s < 3; s++) {
            char text[16];
            snprintf(text, sizeof text, "%d", c[i].nr[s]);
            table_cell(&t, c[i].nr[s] ? text : "");
        }
    }
    table_print(&t, print_columns(STDOUT_FILENO), &out);
    print_reasons(k, CASE_UNSUPPORTED, "unsupported", &out);
    print_reasons(k, CASE_FAILED, "failed", &out);
    total(k, all);
    strbuf_addf(&out, "\n%d passed, %d failed, %d unsupported\n", all[CASE_PASSED],
                all[CASE_FAILED], all[CASE_UNSUPPORTED]);
    fputs(strbuf_text(&out), stdout);
    strbuf_release(&out);
    table_release(&t);
    free(c);
}

/* Text that is no UTF-8 becomes "?": a case may be named as it likes. */
static json_t *json_text(const char *text)
{
    json_t *j = json_string(text);
    return j ? j : json_string("?");
}

static void print_json(const struct check *k)
{
    static const char *const status[] = {"passed", "failed", "unsupported"};
    int nr, all[3];
    struct counts *c = count(k, &nr);
    total(k, all);
    json_t *ops = json_object(), *cases = json_array();
    for (int i = 0; i < nr; i++)
        json_object_set_new(ops, c[i].op,
                            json_pack("{s:i, s:i, s:i}", "passed", c[i].nr[CASE_PASSED], "failed",
                                      c[i].nr[CASE_FAILED], "unsupported",
                                      c[i].nr[CASE_UNSUPPORTED]));
    for (int i = 0; i < k->nr; i++)
        json_array_append_new(cases,
                              json_pack("{s:o, s:s, s:s, s:o}", "name", json_text(k->c[i].name),
                                        "operator", k->c[i].op, "status", status[k->c[i].status],
                                        "reason", json_text(short_reason(&k->c[i]))));
    json_t *j = json_pack("{s:i, s:i, s:i, s:o, s:o}", "passed", all[CASE_PASSED], "failed",
                          all[CASE_FAILED], "unsupported", all[CASE_UNSUPPORTED], "operators", ops,
                          "cases", cases);
    json_dumpf(j, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(j);
    free(c);
}

static int run_all(struct check *k, struct err *e)
{
    const char *spec;
    int rc = 0;
    if (!k->interpret) {
        k->backend = backend_of_target(k->target_name, &spec, e);
        rc = k->backend ? k->backend->target_open(spec, 1, &k->target, e) : ERR_USAGE;
    }
    for (int i = 0; i < k->nr && !rc; i++)
        rc = start_case(k, &k->c[i], e);
    if (k->target)
        k->backend->target_close(k->target);
    return rc;
}

int cmd_check(int argc, char **argv)
{
    struct check k = {.target_name = "llvm", .samples = 2};
    struct err e = ERR_INIT;
    int code = parse(argc, argv, &k), rc = 0, all[3];
    if (code >= 0)
        return code;
    for (int i = optind; i < argc && !rc; i++)
        rc = find_cases(&k, argv[i], "", 0, &e);
    if (!rc && !k.nr)
        rc = err_set(&e, ERR_INPUT, "\"%s\" has no ONNX test cases: no folder with a model.onnx",
                     argv[optind]);
    rc = rc ? rc : run_all(&k, &e);
    if (rc)
        cli_error(&e);
    else if (k.json)
        print_json(&k);
    else
        print_table(&k);
    total(&k, all);
    for (int i = 0; i < k.nr; i++) {
        free(k.c[i].folder);
        free(k.c[i].name);
        free(k.c[i].reason);
    }
    free(k.c);
    return rc == ERR_USAGE ? EXIT_USAGE : rc || all[CASE_FAILED] ? EXIT_FAILED : EXIT_DONE;
}
