/* SPDX-License-Identifier: Apache-2.0 */
/* The system's `cc` compiles the generated source and links. It runs inside the work folder, so
 * that all names are short. */
#include "backends/library_private.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_FILE "cc.log"

extern char **environ;

int library_write_file(const char *path, const void *data, size_t size, struct err *e)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, size, f) == size;
    int why = errno;
    if (f && fclose(f)) {
        ok = false;
        why = errno;
    }
    return ok ? 0 : err_set(e, ERR_IO, "cannot write \"%s\": %s", path, strerror(why));
}

/* The first line of the log that tells of an error, else its first line. */
static void read_reason(const struct library *l, char *out, size_t size)
{
    struct strbuf path = {0};
    char line[400];
    strbuf_addf(&path, "%s/" LOG_FILE, l->work);
    FILE *f = fopen(strbuf_text(&path), "r");
    *out = '\0';
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        bool tells = strstr(line, "error") != NULL;
        if (tells || !*out)
            snprintf(out, size, "%s", line);
        if (tells)
            break;
    }
    if (f)
        fclose(f);
    strbuf_release(&path);
}

static int spawn_cc(const struct library *l, char **argv, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, l->work);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, LOG_FILE,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    int rc = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Runs cc with words separated by blanks; none of them has a blank inside. */
static int run_cc(const struct library *l, const char *words)
{
    char *text = xstrdup(words), *save = NULL;
    char **argv = NULL;
    int nr = 0, cap = 0, status = 0;
    for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        GROW(argv, nr, cap);
        argv[nr++] = p;
    }
    GROW(argv, nr, cap);
    argv[nr] = NULL;
    pid_t pid;
    int why = spawn_cc(l, argv, &pid);
    int rc = 0;
    if (why)
        rc = err_set(l->e, ERR_IO,
                     "cannot run \"cc\", the C compiler that links libraries: %s; "
                     "install one (on Debian: apt install gcc libc6-dev)",
                     strerror(why));
    while (!rc && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            rc = err_set(l->e, ERR_IO, "lost \"cc\": %s", strerror(errno));
    if (!rc && status) {
        char reason[400];
        read_reason(l, reason, sizeof reason);
        rc = err_set(l->e, ERR_BACKEND, "\"cc\" failed: %s", *reason ? reason : "without a word");
    }
    free(argv);
    free(text);
    return rc;
}

/* The assembler takes the file as it is: no compiler reads megabytes of numbers. */
static int embed_weights(const struct library *l)
{
    struct strbuf text = {0}, path = {0}, words = {0};
    const char *name = l->o->name;
    strbuf_addf(&text,
                "    .section .rodata\n    .balign 4096\n    .globl %s_weights\n"
                "    .hidden %s_weights\n    .type %s_weights, @object\n%s_weights:\n"
                "    .incbin \"%s.weights\"\n    .size %s_weights, . - %s_weights\n"
                "    .section .note.GNU-stack,\"\",@progbits\n",
                name, name, name, name, name, name, name);
    strbuf_addf(&path, "%s/weights.s", l->work);
    int rc = library_write_file(strbuf_text(&path), strbuf_text(&text), text.len, l->e);
    strbuf_adds(&words, "cc -c weights.s -o weights.o");
    rc = rc ? rc : run_cc(l, strbuf_text(&words));
    strbuf_release(&words);
    strbuf_release(&path);
    strbuf_release(&text);
    return rc;
}

int library_link(struct library *l)
{
    struct strbuf words = {0};
    const char *name = l->o->name;
    bool parallel = l->o->backend->target_info(l->o->target)->threads > 1;
    strbuf_addf(&words, "cc -std=gnu11 -O2 -fPIC -fvisibility=hidden -c %s.c -o source.o", name);
    int rc = run_cc(l, strbuf_text(&words));
    if (!rc && l->r->weights_inside)
        rc = embed_weights(l);
    strbuf_reset(&words);
    strbuf_addf(&words, "cc -r -nostdlib -o %s.o source.o", name);
    if (l->r->weights_inside)
        strbuf_adds(&words, " weights.o");
    for (int i = 0; i < l->o->tasks->nr; i++)
        if (l->kernel[i].nr_buffers)
            strbuf_addf(&words, " " KERNEL_FILE, i);
    rc = rc ? rc : run_cc(l, strbuf_text(&words));
    strbuf_reset(&words);
    strbuf_addf(&words,
                "cc -shared -o lib%s.so %s.o -Wl,-soname,lib%s.so -Wl,--no-undefined "
                "-Wl,--as-needed -Wl,-z,noexecstack -lm%s",
                name, name, name, parallel ? " -lgomp" : "");
    rc = rc ? rc : run_cc(l, strbuf_text(&words));
    strbuf_release(&words);
    return rc;
}
