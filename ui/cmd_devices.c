/* SPDX-License-Identifier: Apache-2.0 */
/* `devices`: what can be tuned for on this machine. */
#include <stdio.h>

#include "backends/backend.h"
#include "ui/cli.h"

int cmd_devices(int argc, char **argv)
{
    struct cli_options o;
    int code = cli_parse(command_find("devices"), argc, argv, &o);
    if (code >= 0)
        return code;
    if (o.nr_inputs) {
        fprintf(stderr,
                "squall devices: \"%s\" is one argument too many; see squall devices --help\n",
                o.input[0]);
        return EXIT_USAGE;
    }
    const struct backend *b;
    for (int i = 0; (b = backend_at(i)); i++) {
        struct err e = ERR_INIT;
        struct target *t = NULL;
        if (b->target_open("", o.threads, &t, &e)) {
            printf("%-8s %s: %s\n", b->name, b->summary, e.msg);
            continue;
        }
        const struct device_info *info = b->target_info(t);
        printf("%-8s %s\n  target    %s\n  hardware  %s\n  compiler  %s\n"
               "  vectors   %d float32 lanes, %d registers\n"
               "  peak      %.1f GFLOP/s with %d thread%s\n",
               b->name, b->summary, info->target, info->hardware, info->compiler, info->lanes,
               info->registers, info->peak_gflops, info->threads, info->threads == 1 ? "" : "s");
        b->target_close(t);
    }
    return EXIT_DONE;
}
