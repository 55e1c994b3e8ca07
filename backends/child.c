/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WITH_SANITIZER 1
#endif
#endif

/* A crash must look like one, and no report of leaks delays an exit. */
#define SANITIZER_OPTIONS                                                                          \
    "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0:handle_sigill=0:detect_leaks=0"

extern char **environ;

/* Above the descriptors that the child's are moved to, so that moving one never hits another. */
enum { FIRST_FREE_FD = 10 };

/*
 * The environment of the child. A kernel that runs on several threads calls the OpenMP runtime once
 * a call; its threads must still be awake then. They spin for some milliseconds between calls,
 * not for ever (OMP_WAIT_POLICY=active): an idle runner would eat the cores that builders need.
 */
struct environment {
    char **v;
    int nr, cap;
    char threads[40];
};

static void environment_set(struct environment *env, const char *entry)
{
    size_t name = (size_t)(strchr(entry, '=') - entry) + 1;
    for (int i = 0; i < env->nr; i++)
        if (!strncmp(env->v[i], entry, name)) {
            env->v[i] = (char *)entry;
            return;
        }
    GROW(env->v, env->nr, env->cap);
    env->v[env->nr++] = (char *)entry;
}

static void environment_init(struct environment *env, int threads)
{
    *env = (struct environment){0};
    for (char **p = environ; *p; p++) {
        GROW(env->v, env->nr, env->cap);
        env->v[env->nr++] = *p;
    }
    snprintf(env->threads, sizeof env->threads, "OMP_NUM_THREADS=%d", threads);
    environment_set(env, env->threads);
    environment_set(env, "OMP_DYNAMIC=false");
    if (threads > 1) {
        environment_set(env, "OMP_PROC_BIND=true");
        environment_set(env, "GOMP_SPINCOUNT=100000");
        environment_set(env, "KMP_BLOCKTIME=5");
    }
#ifdef WITH_SANITIZER
    environment_set(env, "ASAN_OPTIONS=" SANITIZER_OPTIONS);
    environment_set(env, "TSAN_OPTIONS=" SANITIZER_OPTIONS);
#endif
    GROW(env->v, env->nr, env->cap);
    env->v[env->nr] = NULL;
}

/* Ends of a pipe or socket pair for the child: moved out of the way of the fixed ones. */
static int move_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    close(fd);
    return moved;
}

static int spawn(pid_t *pid, const struct runner_options *o, int sock, int err_fd, int board_fd)
{
    char cpu[16], threads[16];
    snprintf(cpu, sizeof cpu, "%d", o->threads == 1 ? o->cpu : -1);
    snprintf(threads, sizeof threads, "%d", o->threads);
    const char *argv[] = {"squall", "runner", "--fd",      "3",     "--backend", o->backend,
                          "--cpu",  cpu,      "--threads", threads, NULL};
    static_assert(WIRE_SOCKET_FD == 3, "the descriptor in argv");

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, err_fd, 2);
    posix_spawn_file_actions_adddup2(&files, sock, WIRE_SOCKET_FD);
    posix_spawn_file_actions_adddup2(&files, board_fd, WIRE_BOARD_FD);

    /* A process group of its own: Ctrl-C in the terminal is not for it, and what a kernel may start
     * can be killed with it. The worker thread that calls this has blocked its signals. */
    posix_spawnattr_t attr;
    sigset_t all, none;
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETPGROUP);
    struct environment env;
    environment_init(&env, o->threads);
    int rc = posix_spawn(pid, o->exe, &files, &attr, (char *const *)argv, env.v);
    free(env.v);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

int child_start(struct child *c, const struct runner_options *o, int board_fd, struct err *e)
{
    int pair[2] = {-1, -1}, pipe_fd[2] = {-1, -1};
    int rc = 0;
    *c = (struct child){.pid_fd = -1, .sock = -1, .err_fd = -1};
    assert(board_fd >= FIRST_FREE_FD);

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
        pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK) < 0 || (pair[1] = move_up(pair[1])) < 0 ||
        (pipe_fd[1] = move_up(pipe_fd[1])) < 0) {
        rc = err_set(e, ERR_IO, "cannot connect to a runner: %s", strerror(errno));
        goto out;
    }
    /* only the parent's end is to be non-blocking: what does not fit the pipe must wait for it */
    fcntl(pipe_fd[1], F_SETFL, 0);
    int failed = spawn(&c->pid, o, pair[1], pipe_fd[1], board_fd);
    if (failed) {
        c->pid = 0;
        rc = err_set(e, ERR_IO, "cannot start \"%s\": %s", o->exe, strerror(failed));
        goto out;
    }
    c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    c->sock = pair[0];
    c->err_fd = pipe_fd[0];
    pair[0] = pipe_fd[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
        if (pipe_fd[i] >= 0)
            close(pipe_fd[i]);
    }
    return rc;
}

bool child_is_alive(const struct child *c)
{
    if (!c->pid)
        return false;
    struct pollfd p[2] = {{.fd = c->sock, .events = POLLRDHUP},
                          {.fd = c->pid_fd, .events = POLLIN}};
    return poll(p, 2, 0) == 0;
}

/* Reads what there is of standard error and keeps the end of it. */
static void drain_errors(struct child *c)
{
    char buf[1024];
    ssize_t n;
    while ((n = read(c->err_fd, buf, sizeof buf)) > 0) {
        size_t len = (size_t)n;
        if (len > sizeof c->tail - c->tail_len) {
            size_t drop = len - (sizeof c->tail - c->tail_len);
            memmove(c->tail, c->tail + drop, c->tail_len - drop);
            c->tail_len -= drop;
        }
        memcpy(c->tail + c->tail_len, buf, len);
        c->tail_len += len;
    }
    /* at its end, the descriptor would make every poll return at once */
    if (n == 0) {
        close(c->err_fd);
        c->err_fd = -1;
    }
}

/* Waits until the socket is ready for `events`. CHILD_MESSAGE means that it is. */
static enum child_event wait_socket(struct child *c, short events, int interrupt_fd,
                                    int64_t deadline_ns)
{
    for (;;) {
        struct pollfd p[4] = {
            {.fd = c->sock, .events = events},
            {.fd = c->pid_fd, .events = POLLIN},
            {.fd = interrupt_fd, .events = POLLIN},
            {.fd = c->err_fd, .events = POLLIN},
        };
        int64_t left = deadline_ns - clock_mono_ns();
        if (left < 0)
            left = 0;
        struct timespec ts = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int n = ppoll(p, 4, &ts, NULL);
        if (n < 0 && errno != EINTR)
            return CHILD_GONE;
        if (n == 0)
            return CHILD_LATE;
        if (n < 0)
            continue;
        if (p[3].revents)
            drain_errors(c);
        if (p[2].revents)
            return CHILD_INTERRUPTED;
        /* before its death is looked at: a result that it sent first counts */
        if (p[0].revents)
            return CHILD_MESSAGE;
        if (p[1].revents)
            return CHILD_GONE;
        /* a child that only chatters on standard error is late all the same */
        if (left == 0)
            return CHILD_LATE;
    }
}

enum child_event child_send(struct child *c, const struct strbuf *msg, int fd, int interrupt_fd,
                            int64_t deadline_ns)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = {0}};
    size_t sent = 0;
    while (sent < msg->len) {
        struct iovec iov = {.iov_base = msg->buf + sent, .iov_len = msg->len - sent};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (sent == 0) {
            m.msg_control = control.space;
            m.msg_controllen = sizeof control.space;
            struct cmsghdr *h = CMSG_FIRSTHDR(&m);
            h->cmsg_level = SOL_SOCKET;
            h->cmsg_type = SCM_RIGHTS;
            h->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(h), &fd, sizeof fd);
        }
        ssize_t n = sendmsg(c->sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            sent += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            enum child_event event = wait_socket(c, POLLOUT, interrupt_fd, deadline_ns);
            if (event != CHILD_MESSAGE)
                return event;
        } else if (n < 0 && errno != EINTR) {
            return CHILD_GONE;
        }
    }
    return CHILD_SENT;
}

/* How many bytes of the message are still to come; 0 when it is complete, -1 where it is none. */
static ssize_t missing(const struct child *c, enum wire_type type)
{
    size_t body = type == WIRE_HELLO ? sizeof c->in.hello : sizeof c->in.result;
    size_t head = sizeof c->in.head;
    if (c->in_len < head)
        return (ssize_t)(head - c->in_len);
    if (c->in.head.magic != wire_magic || c->in.head.type != (uint32_t)type ||
        c->in.head.bytes != body)
        return -1;
    return (ssize_t)(head + body - c->in_len);
}

enum child_event child_receive(struct child *c, enum wire_type type, int interrupt_fd,
                               int64_t deadline_ns)
{
    static_assert(offsetof(struct child, in.hello) - offsetof(struct child, in) ==
                      sizeof(struct wire_head),
                  "a message is read into one piece of memory");
    for (;;) {
        enum child_event event = wait_socket(c, POLLIN, interrupt_fd, deadline_ns);
        if (event != CHILD_MESSAGE)
            return event;
        ssize_t n =
            recv(c->sock, (char *)&c->in + c->in_len, (size_t)missing(c, type), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return CHILD_GONE;
        if (n > 0)
            c->in_len += (size_t)n;
        ssize_t more = missing(c, type);
        if (more < 0)
            return CHILD_NONSENSE;
        if (more == 0) {
            c->in_len = 0;
            return CHILD_MESSAGE;
        }
    }
}

static const char *signal_meaning(int sig)
{
    switch (sig) {
    case SIGSEGV:
        return "invalid memory access";
    case SIGBUS:
        return "memory that is not there";
    case SIGILL:
        return "an instruction this processor has not";
    case SIGFPE:
        return "integer division";
    case SIGABRT:
        return "it gave up";
    case SIGKILL:
        return "perhaps for want of memory";
    default:
        return NULL;
    }
}

void child_clean_text(char *text)
{
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = *p == '\t' ? ' ' : '?';
}

/* The last line of standard error that is not empty, behind ": ". */
static void add_last_line(struct child *c, struct strbuf *how)
{
    size_t end = c->tail_len;
    while (end > 0 && (c->tail[end - 1] == '\n' || c->tail[end - 1] == ' '))
        end--;
    size_t start = end;
    while (start > 0 && c->tail[start - 1] != '\n' && end - start < 160)
        start--;
    char line[164] = "";
    memcpy(line, c->tail + start, end - start);
    child_clean_text(line);
    if (*line)
        strbuf_addf(how, ": %s", line);
}

static void describe(struct child *c, int status, struct strbuf *how)
{
    if (WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);
        const char *name = sigabbrev_np(sig), *meaning = signal_meaning(sig);
        if (name)
            strbuf_addf(how, "killed by SIG%s", name);
        else
            strbuf_addf(how, "killed by signal %d", sig);
        if (meaning)
            strbuf_addf(how, " (%s)", meaning);
    } else {
        strbuf_addf(how, "exited with code %d", WEXITSTATUS(status));
    }
    add_last_line(c, how);
}

/* True when it has ended by itself; leaves it unreaped, so its number still belongs to it. */
static bool wait_end(struct child *c, int64_t grace_ns)
{
    int64_t deadline = clock_mono_ns() + grace_ns;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid)
            return true;
        int64_t left = deadline - clock_mono_ns();
        if (left <= 0)
            return false;
        if (c->err_fd >= 0)
            drain_errors(c);
        /* without a descriptor to wait on: look again every millisecond */
        struct pollfd p[2] = {{.fd = c->pid_fd, .events = POLLIN},
                              {.fd = c->err_fd, .events = POLLIN}};
        int ms = c->pid_fd >= 0 ? (int)(left / 1000000) + 1 : 1;
        poll(p, 2, ms);
    }
}

void child_end(struct child *c, int64_t grace_ns, struct strbuf *how)
{
    if (!c->pid)
        return;
    close(c->sock);
    bool by_itself = grace_ns > 0 && wait_end(c, grace_ns);
    /* its group, what a kernel may have started; until it is reaped the number is its own */
    kill(-c->pid, SIGKILL);
    kill(c->pid, SIGKILL);
    int status = 0;
    pid_t pid;
    do {
        pid = waitpid(c->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    if (c->err_fd >= 0)
        drain_errors(c);
    if (how) {
        if (by_itself && pid == c->pid)
            describe(c, status, how);
        else
            strbuf_adds(how, "closed its connection");
    }
    if (c->err_fd >= 0)
        close(c->err_fd);
    if (c->pid_fd >= 0)
        close(c->pid_fd);
    *c = (struct child){.pid_fd = -1, .sock = -1, .err_fd = -1};
}
