/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest as a file; for product.c. */
#ifndef UI_PRODUCT_MANIFEST_H
#define UI_PRODUCT_MANIFEST_H

#include "ui/product.h"

/* Hash of the contents of an input, "" where it is no file; the caller frees. */
int manifest_hash(const char *input, char **out, struct err *e);
int manifest_write(const char *folder, const struct product *p, struct err *e);

#endif
