/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data beside the model: large files keep the elements of their tensors in other files.
 *
 * Which, the model says, and the model is foreign: so a file is read only if, after all links are
 * followed, it is a regular one in the model's folder or below it; nothing is read or allocated
 * past its end; and all tensors together are no more than a few times the largest file, however
 * often they name it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/onnx_reader.h"

/* How often the same bytes may be read again: real models share them among few tensors. */
enum { MAX_SHARING = 4 };

/* A number of a key, `otherwise` without it, -1 where it is none. */
static int64_t number_of(const Onnx__TensorProto *t, const char *key, int64_t otherwise)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *x = t->external_data[i];
        if (!x->key || strcmp(x->key, key) != 0)
            continue;
        char *end;
        errno = 0;
        long long v = x->value ? strtoll(x->value, &end, 10) : -1;
        return !x->value || errno || end == x->value || *end || v < 0 ? -1 : v;
    }
    return otherwise;
}

static const char *location_of(const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->n_external_data; i++)
        if (t->external_data[i]->key && strcmp(t->external_data[i]->key, "location") == 0)
            return t->external_data[i]->value;
    return NULL;
}

/* Does the path climb out, if only to come back? Links are looked at later. */
static bool climbs(const char *path)
{
    if (*path == '/' || strchr(path, '\\'))
        return true;
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
            return true;
    return false;
}

static int open_beside(struct onnx_reader *r, const char *location, const char *name)
{
    int fd = -1;
    char *joined = arena_printf(&r->arena, "%s/%s", r->folder, location);
    char *folder = realpath(r->folder, NULL), *file = realpath(joined, NULL);
    const char *shown = onnx_clean(r, location);
    size_t len = folder ? strlen(folder) : 0;
    if (!folder || !file)
        onnx_fail(r, ERR_IO, "cannot open \"%s\", which has the data of tensor \"%s\": %s", shown,
                  name, strerror(errno));
    else if (strncmp(file, folder, len) != 0 || (file[len] != '/' && len > 1))
        onnx_fail(r, ERR_INPUT,
                  "tensor \"%s\" has its data in \"%s\", which lies outside of the model's folder",
                  name, shown);
    else if ((fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
        onnx_fail(r, ERR_IO, "cannot open \"%s\", which has the data of tensor \"%s\": %s", shown,
                  name, strerror(errno));
    free(file);
    free(folder);
    return fd;
}

/* Are `bytes` from `offset` on in the file, and is that not too much in all? */
static bool fits(struct onnx_reader *r, int fd, int64_t offset, int64_t bytes, const char *name)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return !onnx_fail(r, ERR_INPUT, "the data of tensor \"%s\" is in no regular file", name);
    if (offset > st.st_size || bytes > st.st_size - offset)
        return !onnx_fail(r, ERR_INPUT,
                          "tensor \"%s\" has %" PRId64 " bytes from %" PRId64
                          " on in a file of %" PRId64,
                          name, bytes, offset, (int64_t)st.st_size);
    if (st.st_size > r->beside_largest)
        r->beside_largest = st.st_size;
    r->beside_bytes += bytes;
    if (r->beside_bytes / MAX_SHARING > r->beside_largest)
        return !onnx_fail(r, ERR_LIMIT,
                          "tensor \"%s\" and others read the same data again and again", name);
    return true;
}

static bool read_all(int fd, char *to, size_t bytes, int64_t offset)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t n = pread(fd, to + have, bytes - have, offset + (int64_t)have);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        have += n > 0 ? (size_t)n : 0;
    }
    return true;
}

void *onnx_beside(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name, size_t bytes)
{
    const char *location = location_of(t);
    int64_t offset = number_of(t, "offset", 0), length = number_of(t, "length", (int64_t)bytes);
    void *data = NULL;
    if (!r->folder)
        onnx_fail(r, ERR_UNSUPPORTED, "tensor \"%s\" keeps its data in another file", name);
    else if (!location || !*location || climbs(location))
        onnx_fail(r, ERR_INPUT,
                  "tensor \"%s\" has its data in \"%s\", which is no path below the model's folder",
                  name, onnx_clean(r, location));
    else if (offset < 0 || length != (int64_t)bytes)
        onnx_fail(r, ERR_INPUT,
                  "tensor \"%s\" has a length or offset of its data that is wrong: "
                  "%zu bytes are needed",
                  name, bytes);
    int fd = r->rc ? -1 : open_beside(r, location, name);
    if (fd < 0)
        return NULL;
    if (fits(r, fd, offset, (int64_t)bytes, name)) {
        data = malloc(bytes ? bytes : 1);
        if (!data || !read_all(fd, data, bytes, offset)) {
            onnx_fail(r, data ? ERR_IO : ERR_NOMEM, "cannot read the data of tensor \"%s\"", name);
            free(data);
            data = NULL;
        }
    }
    close(fd);
    return data;
}
