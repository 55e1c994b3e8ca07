/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embedded scripts: Lua files of the source tree that are part of the program.
 *
 * The table is written by embed.c at build time; its last entry has no name. A file's first line is
 * its licence, its second a comment that says in one line what it is: the summary.
 */
#ifndef SCRIPTS_EMBEDDED_H
#define SCRIPTS_EMBEDDED_H

#include <stddef.h>

struct embedded_script {
    const char *name; /* of the file, without folder and extension */
    const char *summary;
    const char *text; /* terminated; size does not count the NUL */
    size_t size;
};

extern const struct embedded_script embedded_models[];

#endif
