/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process runs a session. A process number alone says little: it is used again after the
 * process is gone, so its start time and the boot it belongs to are stored with it.
 */
#include "sessions/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void host_name(char *host, size_t size)
{
    if (gethostname(host, size) != 0)
        strcpy(host, "unknown");
    host[size - 1] = '\0';
}

/* The first bytes of a file of /proc; "" where it cannot be read. */
static void read_start(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
}

static void boot_id(char *id, size_t size)
{
    read_start("/proc/sys/kernel/random/boot_id", id, size);
    id[strcspn(id, "\n")] = '\0';
}

/* Start time of a process in ticks since boot, field 22 of its stat (proc(5)); 0 where it is not
 * known, -1 where the process is a zombie or gone. The name, field 2, may hold blanks and brackets.
 */
static int64_t start_time(int64_t pid)
{
    char path[64], stat[1024], state;
    long long ticks;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_start(path, stat, sizeof stat);
    const char *after = strrchr(stat, ')');
    if (!after)
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH ? -1 : 0;
    if (sscanf(after + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld",
               &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? -1 : ticks;
}

static bool meta_is(struct session *s, const char *key, const char *text)
{
    struct strbuf value = {0};
    bool same = meta_get(s, key, &value, NULL) == 1 && !strcmp(strbuf_text(&value), text);
    strbuf_release(&value);
    return same;
}

enum owner owner_check(struct session *s)
{
    char host[64], boot[64];
    int64_t pid = meta_int(s, "pid", 0);
    if (!meta_is(s, "state", "running") || pid <= 0 || pid > INT32_MAX)
        return OWNER_NONE;
    host_name(host, sizeof host);
    boot_id(boot, sizeof boot);
    if (!meta_is(s, "host", host))
        return OWNER_UNKNOWN;
    if (boot[0] && !meta_is(s, "boot", boot))
        return OWNER_GONE;
    int64_t started = meta_int(s, "pid_start", 0), now = start_time(pid);
    if (now < 0 || (now && started && now != started))
        return OWNER_GONE;
    return pid == getpid() ? OWNER_SELF : OWNER_ALIVE;
}

int owner_claim(struct session *s, struct err *e)
{
    char host[64], boot[64];
    host_name(host, sizeof host);
    boot_id(boot, sizeof boot);
    int rc = meta_set(s, "state", "running", e);
    if (!rc)
        rc = meta_set(s, "why", "", e);
    if (!rc)
        rc = meta_set(s, "host", host, e);
    if (!rc)
        rc = meta_set(s, "boot", boot, e);
    if (!rc)
        rc = meta_set_int(s, "pid", getpid(), e);
    if (!rc)
        rc = meta_set_int(s, "pid_start", start_time(getpid()), e);
    return rc;
}
