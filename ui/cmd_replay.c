/* SPDX-License-Identifier: Apache-2.0 */
/* `replay`: a stored session's events, seen by the same screen and printers as live ones. */
#include <stdio.h>

#include "sessions/feed.h"
#include "ui/cli.h"
#include "ui/run.h"

int cmd_replay(int argc, char **argv)
{
    struct cli_options o;
    int code = cli_parse(command_find("replay"), argc, argv, &o);
    if (code >= 0)
        return code;
    if (o.nr_inputs != 1) {
        fprintf(stderr, "squall replay: wants one session; see squall replay --help\n");
        return EXIT_USAGE;
    }
    struct err e = ERR_INIT;
    struct feed *f = NULL;
    int rc = feed_open(o.input[0], 0, &f, &e);
    if (!rc)
        rc = show_events(&o, f, NULL, -1, false, &e);
    if (rc)
        cli_error(&e);
    return rc == ERR_INTERRUPTED ? EXIT_INTERRUPTED : rc ? EXIT_FAILED : EXIT_DONE;
}
