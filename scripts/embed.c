/* SPDX-License-Identifier: Apache-2.0 */
/* Build tool: embed TABLE OUTPUT FILE... writes Lua files as the C table of embedded.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SUMMARY = 120, MAX_FILES = 256 };

struct script {
    char name[64], summary[MAX_SUMMARY];
    long size;
};

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "embed: %s: %s\n", path, what);
    exit(1);
}

static void name_of(const char *path, struct script *s)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t len = dot ? (size_t)(dot - base) : strlen(base);
    if (len == 0 || len >= sizeof s->name)
        fail(path, "the name of the file is empty or too long");
    memcpy(s->name, base, len);
    s->name[len] = '\0';
}

static void summary_of(const char *path, FILE *in, struct script *s)
{
    char line[MAX_SUMMARY + 8];
    if (!fgets(line, sizeof line, in) || !fgets(line, sizeof line, in))
        fail(path, "has no second line");
    size_t len = strcspn(line, "\n");
    if (line[len] != '\n' || strncmp(line, "-- ", 3) != 0 || len == 3)
        fail(path, "the second line must be a short comment that says what the file is");
    line[len] = '\0';
    if (strpbrk(line, "\"\\"))
        fail(path, "the second line must not have quotes or backslashes");
    snprintf(s->summary, sizeof s->summary, "%.*s", MAX_SUMMARY - 1, line + 3);
    rewind(in);
}

/* Numbers, not a string: a string literal may not be longer than 4095 characters in ISO C. */
static void write_text(const char *path, FILE *in, FILE *out, int nr, struct script *s)
{
    fprintf(out, "static const char text_%d[] = {", nr);
    for (int c; (c = getc(in)) != EOF; s->size++) {
        if (c == 0 || c > 126)
            fail(path, "must be plain ASCII");
        fprintf(out, "%s%d,", s->size % 24 ? "" : "\n    ", c);
    }
    fprintf(out, "\n    0};\n");
}

int main(int argc, char **argv)
{
    static struct script script[MAX_FILES];
    if (argc < 3 || argc - 3 > MAX_FILES)
        fail("usage", "embed TABLE OUTPUT FILE...");
    FILE *out = fopen(argv[2], "w");
    if (!out)
        fail(argv[2], "cannot be written");
    fprintf(out, "/* Written by embed.c. */\n#include \"scripts/embedded.h\"\n\n");
    for (int i = 3; i < argc; i++) {
        FILE *in = fopen(argv[i], "r");
        if (!in)
            fail(argv[i], "cannot be read");
        name_of(argv[i], &script[i - 3]);
        summary_of(argv[i], in, &script[i - 3]);
        write_text(argv[i], in, out, i - 3, &script[i - 3]);
        fclose(in);
    }
    fprintf(out, "\nconst struct embedded_script %s[] = {\n", argv[1]);
    for (int i = 0; i < argc - 3; i++)
        fprintf(out, "    {\"%s\", \"%s\", text_%d, %ld},\n", script[i].name, script[i].summary, i,
                script[i].size);
    fprintf(out, "    {0, 0, 0, 0},\n};\n");
    if (fclose(out) != 0)
        fail(argv[2], "cannot be written");
    return 0;
}
