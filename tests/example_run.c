/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program around a compiled model:
 *
 *   squall tune tinynet --session s.squall
 *   squall compile s.squall -o lib
 *   cc -Ilib example_run.c lib/tinynet.o -lm             or lib/libtinynet.so instead of the object
 */
#include <stdio.h>
#include <stdlib.h>

#include "tinynet.h"

int main(void)
{
    char why[200];
    struct tinynet *model = tinynet_create(NULL, why, sizeof why);
    if (!model) {
        fprintf(stderr, "no model: %s\n", why);
        return 1;
    }
    for (int i = 0; i < TINYNET_INPUTS; i++)
        printf("input %s: %lld numbers\n", tinynet_input[i].name, tinynet_input[i].elements);

    size_t nr_in = (size_t)tinynet_input[0].elements, nr_out = (size_t)tinynet_output[0].elements;
    float *image = malloc(nr_in * sizeof *image), *classes = malloc(nr_out * sizeof *classes);
    if (!image || !classes)
        return 1;
    for (size_t i = 0; i < nr_in; i++)
        image[i] = (float)i / (float)nr_in;

    const float *const in[] = {image};
    float *const out[] = {classes};
    tinynet_threads(model, 1);
    tinynet_run(model, in, out);
    for (size_t i = 0; i < nr_out; i++)
        printf("%.6f\n", (double)classes[i]);

    free(classes);
    free(image);
    tinynet_free(model);
    return 0;
}
