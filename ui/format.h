/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people read them; shared by the screen and the printers.
 *
 * Every function writes into the caller's buffer of FORMAT_MAX bytes and returns it, so that calls
 * can stand in an argument list. The output is ASCII. NAN (and what is not finite) becomes "-".
 */
#ifndef UI_FORMAT_H
#define UI_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/strbuf.h"

enum { FORMAT_MAX = 32 };

/* Four significant digits and the unit that suits: "4.213 ms", "912.4 us", "35.2 s". */
char *format_time(char buf[FORMAT_MAX], double ns);

/* One unit for a whole column: chosen by a reference value, with decimals that give it four
 * significant digits. format_in() writes the number alone. */
struct format_unit {
    double ns;        /* length of the unit */
    const char *text; /* "us"; static */
    int decimals;
};
struct format_unit format_unit(double ns);
char *format_in(char buf[FORMAT_MAX], double ns, const struct format_unit *u);

/* A span of a clock: "0:07", "12:34", "1:02:03", "3d 04:05". */
char *format_elapsed(char buf[FORMAT_MAX], int64_t ns);

/* "0", "9999", "12.3k", "4.56M", "1.2e15"; at most 6 characters. */
char *format_count(char buf[FORMAT_MAX], double n);

/* Candidates of a space: "9604"; "100k or more" where counting ended there (EVENT_SPACE_CAP). */
char *format_space(char buf[FORMAT_MAX], double n);

/* How many times faster `to` is than `from`: "3.09x", "12.4x", "104x". */
char *format_speedup(char buf[FORMAT_MAX], double from_ns, double to_ns);

/* Change of a time as a fraction, with its sign: "-3.2%", "+18%", "+999%", more as ">999%". */
char *format_change(char buf[FORMAT_MAX], double fraction);

/* A share in 0..1 as "42%". */
char *format_share(char buf[FORMAT_MAX], double fraction);

/* ".31", ".004", "<.001", "1.00". */
char *format_p(char buf[FORMAT_MAX], double p);

/* "0.41", "45.3", "912", "12345". */
char *format_gflops(char buf[FORMAT_MAX], double gflops);

/* Work: "850 FLOP", "3.63 GFLOP". */
char *format_flop(char buf[FORMAT_MAX], double flop);

/* "512 B", "1.5 MiB". */
char *format_bytes(char buf[FORMAT_MAX], double bytes);

/*
 * The knobs of a trial are stored as {"tile_oc":[4,8,2,16],"unroll":512}. format_knobs() appends
 * them as people write them: "tile_oc 4,8,2,16  unroll 512"; text that is no such object is appended
 * as it is. format_knob() finds the value of one by name: "4,8,2,16"; false where it has none.
 */
void format_knobs(struct strbuf *out, const char *json, const char *base);
bool format_knob(const char *json, const char *name, char *buf, size_t size);

#endif
