/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_term.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h>
#include <term.h>

#include "ui/keys.h"
#include "ui/screen_draw.h"

enum { NR_CRASH = 5, ALT_STACK = 64 * 1024 };

static const int crash_signals[NR_CRASH] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
static const int flag_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT};
enum { NR_FLAGS = sizeof flag_signals / sizeof flag_signals[0] };

/* The one terminal. A signal handler reaches it, so it cannot be anyone's local. */
static struct {
    SCREEN *screen;
    bool open;
    struct termios before;
    char leave[128]; /* bytes that leave the alternate screen and show the cursor */
    size_t leave_len;
    int log_pipe[2], old_stderr;
    sigset_t old_mask, wait_mask;
    struct sigaction old_flag[NR_FLAGS], old_crash[NR_CRASH];
    void *alt_stack;
} term = {.log_pipe = {-1, -1}, .old_stderr = -1};

static volatile sig_atomic_t flags;

static void on_signal(int sig)
{
    switch (sig) {
    case SIGHUP:
        flags |= TERM_HANGUP;
        break;
    case SIGTSTP:
        flags |= TERM_SUSPEND;
        break;
    case SIGCONT:
        flags |= TERM_CONTINUED;
        break;
    default:
        flags |= TERM_STOP;
        break;
    }
}

/* write() whose result nobody is left to act on. */
static void put(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

/*
 * Only what may be called in a handler: the bytes and the modes were prepared when the terminal was
 * opened, endwin() is not touched. Another thread may crash while main draws; a torn escape sequence
 * is the worst of it.
 */
static void on_crash(int sig)
{
    static const char *const names[NR_CRASH] = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"};
    const char *name = "a signal";
    for (int i = 0; i < NR_CRASH; i++)
        if (crash_signals[i] == sig)
            name = names[i];
    put(STDOUT_FILENO, term.leave, term.leave_len);
    tcsetattr(STDIN_FILENO, TCSANOW, &term.before);
    int err = term.old_stderr >= 0 ? term.old_stderr : STDERR_FILENO;
    if (term.log_pipe[0] >= 0) {
        /* The reason of an abort is a line in the pipe that nobody has read yet. */
        char buf[512];
        ssize_t n;
        while ((n = read(term.log_pipe[0], buf, sizeof buf)) > 0)
            put(err, buf, (size_t)n);
    }
    static const char head[] = "squall: crashed with ";
    static const char tail[] = "; what was measured is in the session, `squall resume` goes on\n";
    put(err, head, sizeof head - 1);
    put(err, name, strlen(name));
    put(err, tail, sizeof tail - 1);
    /* The handler was installed to run once: the second time the default action ends the process. */
    raise(sig);
}

static void catch_signals(void)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    sigfillset(&sa.sa_mask);
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGWINCH);
    for (int i = 0; i < NR_FLAGS; i++) {
        sigaction(flag_signals[i], &sa, &term.old_flag[i]);
        sigaddset(&block, flag_signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &block, &term.old_mask);
    term.wait_mask = term.old_mask;
    for (int i = 0; i < NR_FLAGS; i++)
        sigdelset(&term.wait_mask, flag_signals[i]);
    sigdelset(&term.wait_mask, SIGWINCH);

    stack_t alt = {.ss_size = ALT_STACK};
    alt.ss_sp = term.alt_stack = malloc(ALT_STACK);
    if (alt.ss_sp)
        sigaltstack(&alt, NULL);
    sa.sa_handler = on_crash;
    sa.sa_flags = SA_ONSTACK | (int)SA_RESETHAND | SA_NODEFER;
    sigemptyset(&sa.sa_mask);
    for (int i = 0; i < NR_CRASH; i++)
        sigaction(crash_signals[i], &sa, &term.old_crash[i]);
}

static void release_signals(void)
{
    for (int i = 0; i < NR_CRASH; i++)
        sigaction(crash_signals[i], &term.old_crash[i], NULL);
    for (int i = 0; i < NR_FLAGS; i++)
        if (flag_signals[i] != SIGHUP)
            sigaction(flag_signals[i], &term.old_flag[i], NULL);
    /* A closing terminal hangs up twice, by the kernel and by the shell, and after the first a
     * session is still to be closed. */
    signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, &term.old_mask, NULL);
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&off, NULL);
    free(term.alt_stack);
    term.alt_stack = NULL;
}

static void redirect_stderr(void)
{
    if (!isatty(STDERR_FILENO) || pipe2(term.log_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    term.old_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (term.old_stderr >= 0)
        dup2(term.log_pipe[1], STDERR_FILENO);
}

static void restore_stderr(void)
{
    if (term.old_stderr >= 0) {
        dup2(term.old_stderr, STDERR_FILENO);
        close(term.old_stderr);
    }
    for (int i = 0; i < 2; i++)
        if (term.log_pipe[i] >= 0)
            close(term.log_pipe[i]);
    term.old_stderr = term.log_pipe[0] = term.log_pipe[1] = -1;
}

static void add_capability(const char *name)
{
    const char *s = tigetstr(name);
    if (!s || s == (const char *)-1)
        return;
    size_t n = strlen(s);
    if (term.leave_len + n > sizeof term.leave)
        return;
    memcpy(term.leave + term.leave_len, s, n);
    term.leave_len += n;
}

int term_open(const struct screen_options *o, struct theme *t, struct err *e)
{
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, ERR_UNSUPPORTED, "the screen needs a terminal; use --batch");
    if (!name || !*name || !strcmp(name, "dumb"))
        return err_set(e, ERR_UNSUPPORTED, "the terminal \"%s\" has no screen; use --batch",
                       name && *name ? name : "unknown");
    tcgetattr(STDIN_FILENO, &term.before);
    catch_signals();
    /* Before newterm(): ncurses reads it there. The user's own ESCDELAY wins. */
    if (!getenv("ESCDELAY"))
        set_escdelay(25);
    term.screen = newterm(NULL, stdout, stdin);
    if (!term.screen) {
        release_signals();
        return err_set(e, ERR_UNSUPPORTED,
                       "cannot open a screen on the terminal \"%s\"; check TERM, "
                       "or use --batch",
                       name);
    }
    set_term(term.screen);
    term.leave_len = 0;
    add_capability("sgr0");
    add_capability("cnorm");
    add_capability("rmkx");
    add_capability("rmcup");
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    redirect_stderr();
    term.open = true;
    theme_init(t, theme_wants_colour(o->colour, getenv("NO_COLOR")), o->light,
               theme_glyph_set(o->glyphs, nl_langinfo(CODESET)));
    return 0;
}

void term_close(void)
{
    if (!term.open)
        return;
    term.open = false;
    endwin();
    restore_stderr();
    release_signals();
    delscreen(term.screen);
    term.screen = NULL;
}

int term_log_fd(void)
{
    return term.old_stderr >= 0 ? term.log_pipe[0] : -1;
}

unsigned term_wait(struct pollfd *fds, int nr, int64_t timeout_ns)
{
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    int n = ppoll(fds, (nfds_t)nr, timeout_ns < 0 ? NULL : &ts, &term.wait_mask);
    if (n <= 0)
        for (int i = 0; i < nr; i++)
            fds[i].revents = 0;
    /* With a descriptor ready, no signal is let through: a closed terminal, which always is, would
     * keep its own SIGHUP out. */
    if (n > 0)
        ppoll(NULL, 0, &(struct timespec){0}, &term.wait_mask);
    /* The signals are blocked here: nothing can be set between reading and clearing. */
    unsigned got = (unsigned)flags;
    flags = 0;
    return got;
}

int term_key(void)
{
    static const struct {
        wint_t curses;
        int key;
    } map[] = {
        {KEY_UP, UK_UP},       {KEY_DOWN, UK_DOWN},   {KEY_LEFT, UK_LEFT},
        {KEY_RIGHT, UK_RIGHT}, {KEY_PPAGE, UK_PGUP},  {KEY_NPAGE, UK_PGDN},
        {KEY_HOME, UK_HOME},   {KEY_END, UK_END},     {KEY_BTAB, UK_BTAB},
        {KEY_ENTER, UK_ENTER}, {KEY_BACKSPACE, UK_BACKSPACE}, {KEY_RESIZE, UK_RESIZE},
    };
    wint_t c;
    int kind = get_wch(&c);
    if (kind == ERR)
        return UK_NONE;
    if (kind == OK)
        return c == '\r' ? UK_ENTER : (int)c;
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        if (map[i].curses == c)
            return map[i].key;
    if (c > KEY_F(0) && c <= KEY_F(12))
        return UK_F0 + (int)(c - KEY_F(0));
    /* A key without a meaning here is still a key: the caller reads on. */
    return 0;
}

void term_repaint(void)
{
    clearok(curscr, TRUE);
}

void term_suspend(bool group)
{
    struct sigaction dfl, old;
    memset(&dfl, 0, sizeof dfl);
    dfl.sa_handler = SIG_DFL;
    def_prog_mode();
    endwin();
    sigaction(SIGTSTP, &dfl, &old);
    sigset_t unblock, mask;
    sigemptyset(&unblock);
    sigaddset(&unblock, SIGTSTP);
    kill(group ? 0 : getpid(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &unblock, &mask); /* stops here */
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGTSTP, &old, NULL);
    reset_prog_mode();
    refresh();
    term_repaint();
}

int screen_shot(struct view *v, const struct board *b, int rows, int cols, struct strbuf *out,
                struct err *e)
{
    FILE *in = fopen("/dev/null", "r"), *null = fopen("/dev/null", "w");
    SCREEN *s = in && null ? newterm("xterm-256color", null, in) : NULL;
    int rc = 0;
    if (!s) {
        rc = err_set(e, ERR_UNSUPPORTED, "cannot open a screen of type 'xterm-256color'; is its "
                     "terminfo installed?");
        goto out;
    }
    set_term(s);
    resize_term(rows, cols);
    struct theme t;
    theme_init(&t, false, false, v->set);
    view_arrange(v, b, rows, cols);
    draw_frame(&(struct draw){b, v, &t});
    draw_to_text(out);
    endwin();
    delscreen(s);
out:
    if (in)
        fclose(in);
    if (null)
        fclose(null);
    return rc;
}
