/* SPDX-License-Identifier: Apache-2.0 */
/* squall: finds the command, and knows every backend. A new command is one file and one line. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/llvm/llvm.h"
#include "backends/runner.h"
#include "ui/cli.h"

const struct command commands[] = {
    {"tune", "INPUT...", "Tunes the kernels of the inputs; without an input, of ResNet-18.", cmd_tune,
     "  --session FILE   keep the session there (default: a new file in $XDG_DATA_HOME/squall)\n"
     "  --explore N      trials of exploration a task (64)\n"
     "  --refine N       trials of Droplet Search a task (64)\n"
     "  --trials N       trials of the whole session\n"
     "  --time SECONDS   of the whole session\n"
     "  --strategy NAME  of the exploration (evolutionary, of recorded spaces forest); droplet skips it\n"
     "  --seed N         of all random choices (0)\n"
     "  --jobs N         builder threads (one a core, but one)\n"
     "  --threads N      of the kernels (1)\n"
     "  --cache WHERE    constants are at a measured call: warm, cold, or as in the network (auto)\n"
     "  --layout HOW     activations flow in blocks of channels where operators can (blocked), plain, or\n"
     "                   as measuring both says where that is in doubt (auto)\n"
     "  --cost-model M   trees (XGBoost), or none: by measured neighbours (trees, if built in)\n"
     "  --learn-from SESSION   begin with what an earlier one of the same target measured; may be\n"
     "                   repeated\n"
     "  --target T       llvm, or llvm:cpu=NAME\n"
     "  --task GLOB      only the tasks with such a name\n"
     "  --shape NAME=1x3x224x224   sizes of an input, or NAME=8 of a dimension, that an ONNX file\n"
     "                   leaves free\n"
     "  of recorded spaces (Kernel Tuner, T4, KTT and TVM files), which answer in virtual time:\n"
     "  --constraint EXPR   what configurations must keep, as Python writes it; may be repeated\n"
     "  --constraints FILE  one a line, or a T1 file; without any the file's rows are the space\n"
     "  --objective NAME    another column than the file's; --maximise, --minimise: its direction\n"
     "  --speed X           times as fast as it was measured; 0 at once (0)\n"
     "  --batch          a line an event instead of the workbench\n"
     "  --json           JSON lines\n"
     "  --color WHEN     auto, always or never\n"
     "  --ascii          no line graphics; --braille: finer curves\n"},
    {"resume", "SESSION", "Goes on with an interrupted session, from where it stopped.", cmd_resume,
     "  --explore N, --refine N      new budgets of every task, in trials from its beginning; also of\n"
     "                   a finished session, which then goes on\n"
     "  --trials N, --time SECONDS   new budgets of the whole session\n"
     "  --take-over      although another host seems to run it\n"
     "  --batch, --json, --color, --ascii, --braille   as for tune\n"},
    {"replay", "SESSION", "Plays a session again, in the workbench or as lines.", cmd_replay,
     "  --speed X        1 is as it was, 10 ten times faster, 0 at once (1)\n"
     "  --batch, --json, --color, --ascii, --braille   as for tune\n"},
    {"attach", "SESSION", "Watches a session that another squall is running; leaving does not stop it.",
     cmd_attach, "  --batch, --json, --color, --ascii, --braille   as for tune\n"},
    {"show", "SESSION [tasks|leaderboard|trial N|failures]", "Tells what a session found.", cmd_show,
     NULL},
    {"compile", "SESSION [INPUT] -o DIR", "Makes a library of the tuned model: shared object, object, "
     "header.", cmd_compile, NULL},
    {"bench", "DIR|SESSION [INPUT]", "Runs a compiled model: its latency, and how far its outputs "
     "are off.", cmd_bench, NULL},
    {"check", "DIR...", "Runs ONNX test folders through compiled kernels.", cmd_check, NULL},
    {"compare", "FILE...", "Compares strategies on recorded spaces, by performance over time.",
     cmd_compare, NULL},
    {"space", "FILE", "Tells knobs, constraints and what is recorded of a recorded space.", cmd_space,
     "  --constraint EXPR, --constraints FILE, --objective NAME, --maximise, --minimise   as for "
     "tune\n"},
    {"import", "FILE -o SESSION", "Makes a finished session of a recorded space.", cmd_import,
     "  -o SESSION       the session, a new file\n"
     "  --task NAME      the workload, where the file has several (the largest)\n"},
    {"export", "SESSION|FILE", "Writes trials in a format that other tools read.", cmd_export,
     "  --format F       t4: T4 results; kt: a Kernel Tuner cachefile; csv; json (t4)\n"
     "  -o FILE          where to (standard output)\n"
     "  --task NAME      the task, where there are several\n"},
    {"devices", NULL, "Lists the targets of this machine, with their measured peak.", cmd_devices,
     "  --threads N      of the measurement of the peak (1)\n"},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct command *command_find(const char *name)
{
    for (int i = 0; commands[i].name; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static void print_usage(FILE *to)
{
    fprintf(to, "usage: squall COMMAND [options]\n\n");
    for (int i = 0; commands[i].name; i++)
        fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\nsquall COMMAND --help tells the options of a command.\n");
}

int main(int argc, char **argv)
{
    backend_register(&llvm_backend);
    /* The child in which kernels run is this program, too; no command of a person's. */
    if (argc > 1 && strcmp(argv[1], "runner") == 0)
        return runner_main(argc - 1, argv + 1);
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("squall %s\n", SQUALL_VERSION);
        return EXIT_DONE;
    }
    const struct command *c = command_find(argv[1]);
    if (!c) {
        fprintf(stderr, "squall: there is no command \"%s\"; see squall --help\n", argv[1]);
        return EXIT_USAGE;
    }
    return c->run(argc - 1, argv + 1);
}
