/* SPDX-License-Identifier: Apache-2.0 */
/* `replay` and `attach`: the events of a stored session, or of one that another squall is running,
 * seen by the same screen and printers as live ones. */
#include <stdio.h>

#include "sessions/feed.h"
#include "ui/cli.h"
#include "ui/run.h"

static int show_session(const char *command, enum show_mode mode, int argc, char **argv)
{
    struct cli_options o;
    int code = cli_parse(command_find(command), argc, argv, &o);
    if (code >= 0)
        return code;
    if (o.nr_inputs != 1) {
        fprintf(stderr, "squall %s: wants one session; see squall %s --help\n", command, command);
        return EXIT_USAGE;
    }
    struct err e = ERR_INIT;
    struct feed *f = NULL;
    int rc = feed_open(o.input[0], 0, &f, &e);
    if (!rc)
        rc = show_events(&o, mode, f, NULL, 0, -1, &e);
    if (rc == ERR_INTERRUPTED)
        return EXIT_INTERRUPTED;
    if (rc)
        cli_error(&e);
    return rc ? EXIT_FAILED : EXIT_DONE;
}

int cmd_replay(int argc, char **argv)
{
    return show_session("replay", SHOW_REPLAY, argc, argv);
}

int cmd_attach(int argc, char **argv)
{
    return show_session("attach", SHOW_ATTACHED, argc, argv);
}
