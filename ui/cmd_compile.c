/* SPDX-License-Identifier: Apache-2.0 */
/* `compile`: the best schedules of a session as a library with a header. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/cli.h"
#include "ui/format.h"
#include "ui/product.h"

static const char help_text[] =
    "  -o, --output DIR   where lib<NAME>.so, <NAME>.o, .h, .c and .json go (made if missing)\n"
    "  --name NAME        of the files and functions (the model's)\n"
    "  --target T         must be what the session was tuned for (that of the session)\n"
    "  --weights WHERE    inside, or file: <NAME>.weights, mapped by create() (by size: inside up\n"
    "                     to 128 MiB)\n"
    "  --seed-weights     replaces constant-filled weights by reproducible random ones\n"
    "  --logits           gives out the input of the final Softmax\n"
    "  --json             prints the manifest\n"
    "\n"
    "Each kernel is built with the refined schedule of its task, else with the explored one, else\n"
    "with the default. Weights without numbers, of Lua networks and named workloads, are made up,\n"
    "reproducibly. Of a session with several inputs, INPUT says which.\n"
    "The library needs libc, libm and, for several threads, libgomp. cc compiles and links.\n";

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("squall compile: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("; see squall compile --help\n", stderr);
    va_end(ap);
    return EXIT_USAGE;
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct product_options *o, bool *json)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"name", required_argument, NULL, 'n'},
        {"target", required_argument, NULL, 't'},
        {"weights", required_argument, NULL, 'w'},
        {"seed-weights", no_argument, NULL, 's'},
        {"logits", no_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":ho:", options, NULL)) != -1) {
        switch (c) {
        case 'o':
            o->folder = optarg;
            break;
        case 'n':
            o->name = optarg;
            break;
        case 't':
            o->target = optarg;
            break;
        case 'w':
            if (strcmp(optarg, "inside") != 0 && strcmp(optarg, "file") != 0)
                return usage("--weights wants inside or file, not \"%s\"", optarg);
            o->weights = *optarg == 'i' ? WEIGHTS_INSIDE : WEIGHTS_FILE;
            break;
        case 's':
            o->seed_weights = true;
            break;
        case 'l':
            o->logits = true;
            break;
        case 'j':
            *json = true;
            break;
        case 'h':
            printf("usage: squall compile [options] SESSION [INPUT] -o DIR\n\n%s\n\n%s",
                   command_find("compile")->summary, help_text);
            return EXIT_DONE;
        case ':':
            return usage("%s wants a value", argv[optind - 1]);
        default:
            return usage("there is no option %s", argv[optind - 1]);
        }
    }
    int nr = argc - optind;
    if (nr < 1)
        return usage("wants a session");
    if (nr > 2)
        return usage("\"%s\" is one argument too many", argv[optind + 2]);
    o->session = argv[optind];
    o->input = nr > 1 ? argv[optind + 1] : NULL;
    return o->folder ? -1 : usage("wants a folder for the library, with -o");
}

static void print_report(const struct product *p, struct strbuf *out)
{
    const struct library_report *r = &p->report;
    char a[FORMAT_MAX], b[FORMAT_MAX];
    strbuf_addf(out, "%s for %s, %d thread%s: %d call%s of %d kernel%s\n", p->name, p->target,
                p->threads, p->threads == 1 ? "" : "s", r->nr_calls, r->nr_calls == 1 ? "" : "s",
                r->nr_kernels, r->nr_kernels == 1 ? "" : "s");
    strbuf_addf(out, "  schedules    %d refined, %d explored, %d default\n", p->nr_refined,
                p->nr_explored, p->nr_default);
    if (r->nr_stale)
        strbuf_addf(out,
                    "               %d of the session are of another version: default "
                    "schedules in their place\n",
                    r->nr_stale);
    if (strcmp(p->tuned_with, p->compiler) != 0)
        strbuf_addf(out, "               tuned with %s, built with %s: times may differ\n",
                    p->tuned_with, p->compiler);
    strbuf_addf(out, "  weights      %s %s\n", format_bytes(a, (double)r->weights_bytes),
                r->weights_inside ? "inside" : "in a file of their own");
    strbuf_addf(out, "  activations  %s in one arena, %s without sharing memory\n",
                format_bytes(a, (double)r->arena_bytes), format_bytes(b, (double)r->apart_bytes));
}

int cmd_compile(int argc, char **argv)
{
    struct product_options o = {0};
    struct product p;
    struct err e = ERR_INIT;
    struct strbuf out = {0};
    bool json = false;
    int code = parse(argc, argv, &o, &json);
    if (code >= 0)
        return code;
    int64_t start_ns = clock_mono_ns();
    int rc = product_compile(&o, &p, &e);
    if (rc) {
        cli_error(&e);
        return rc == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
    }
    char took[FORMAT_MAX];
    if (json) {
        product_json(&p, &out);
    } else {
        print_report(&p, &out);
        strbuf_addf(&out, "made %s/lib%s.so, %s.o and %s.h in %s\n", o.folder, p.name, p.name,
                    p.name, format_time(took, (double)(clock_mono_ns() - start_ns)));
    }
    bool ok = fwrite(strbuf_text(&out), 1, out.len, stdout) == out.len && !fflush(stdout);
    if (!ok)
        fprintf(stderr, "squall: cannot write the output: %s\n", strerror(errno));
    strbuf_release(&out);
    product_clear(&p);
    return ok ? EXIT_DONE : EXIT_FAILED;
}
