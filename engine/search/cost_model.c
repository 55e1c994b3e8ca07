/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/cost_model.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/hash.h"
#include "engine/search/trees.h"

enum {
    WARM_UP = 32,
    MOST = 32768,    /* trials kept: the newest */
    CHUNK = 256,     /* candidates predicted at a time */
    MAX_RIVALS = 64, /* trials that a new one is paired with, to see how well it was ranked */
};

static const double GROWTH = 1.2, LEAST_WEIGHT = 0.15;

struct sample {
    int task, nr_rows;
    double cost_ns, estimate;
    float guess; /* by the model of its time; NAN where there was none */
};

struct cost_model {
    int nr, cap, next; /* samples; where the next goes when it is full */
    struct sample *sample;
    float (**row)[FEATURES]; /* of each */
    int64_t added, learned;  /* samples in all; when it learned last */
    int nr_tasks;
    double *best_ns, *least; /* of each task: the cost, the estimate */
    double *scale;           /* of each task that the trees in use know: speed times estimate */
    int nr_scales;
    int *fresh; /* samples since the last learning, as indices */
    int nr_fresh, cap_fresh;
    uint64_t told; /* hash of all that was added */

    bool (*find)(void *ctx, uint64_t data, struct strbuf *out); /* NULL: nothing is recalled */
    void *find_ctx;

    struct trees *trees; /* in use */

    /* The learner's while `learning`; handed over by creating and joining its thread. */
    bool learning, threaded; /* threaded: by a thread, and not at once */
    pthread_t thread;
    struct {
        float (*row)[FEATURES];
        int *first, nr;
        float *label, *weight;
        double *scale; /* of each task */
        int nr_tasks;
        struct trees *trees;
        struct err err;
        struct cost_model_news news;
    } job;
};

struct cost_model *cost_model_new(struct err *e)
{
    if (trees_missing()) {
        err_set(e, ERR_UNSUPPORTED, "%s", trees_missing());
        return NULL;
    }
    struct cost_model *m = xcalloc(1, sizeof *m);
    m->told = HASH64_INIT;
    return m;
}

void cost_model_recalls(struct cost_model *m,
                        bool (*find)(void *ctx, uint64_t data, struct strbuf *out), void *ctx)
{
    m->find = find;
    m->find_ctx = ctx;
}

static void job_release(struct cost_model *m)
{
    free(m->job.row);
    free(m->job.first);
    free(m->job.label);
    free(m->job.weight);
    free(m->job.scale);
    trees_free(m->job.trees);
    memset(&m->job, 0, sizeof m->job);
}

void cost_model_free(struct cost_model *m)
{
    if (!m)
        return;
    if (m->learning && m->threaded)
        pthread_join(m->thread, NULL);
    job_release(m);
    trees_free(m->trees);
    for (int i = 0; i < m->nr; i++)
        free(m->row[i]);
    free(m->row);
    free(m->sample);
    free(m->best_ns);
    free(m->least);
    free(m->scale);
    free(m->fresh);
    free(m);
}

double cost_model_cost(enum trial_status status, double cost_ns, int nr_samples,
                       const double *sample_ns)
{
    if (status == TRIAL_OK)
        return cost_ns > 0 ? cost_ns : (double)NAN;
    if (status == TRIAL_CUT && nr_samples > 0)
        return sample_ns[0] > 0 ? sample_ns[0] : (double)NAN;
    return status == TRIAL_INVALID || status == TRIAL_DEVICE_ERROR ? (double)NAN : (double)INFINITY;
}

double cost_model_estimate(const float (*row)[FEATURES], int nr_rows)
{
    double sum = 0;
    for (int i = 0; i < nr_rows; i++)
        sum += exp2((double)row[i][FEATURE_COST]) - 1;
    return fmax(sum, DBL_MIN);
}

/* What a task's speed times the estimate comes to; of a task that the trees do not know, so that
 * the least estimate has the speed 1. */
static double scale_of(const struct cost_model *m, int task, double least)
{
    return task < m->nr_scales && m->scale[task] > 0 ? m->scale[task] : least;
}

static double base_speed(double scale, double estimate)
{
    return fmin(scale / estimate, 1);
}

static float guess(struct cost_model *m, int task, const float (*row)[FEATURES], int nr_rows,
                   double est)
{
    float out = NAN;
    if (!m->trees)
        return NAN;
    trees_predict(m->trees, row, (int[]){0, nr_rows}, 1, &out);
    return out + (float)base_speed(scale_of(m, task, m->least[task]), est);
}

/* The place of a new sample: at the end, or in place of the oldest. */
static int place(struct cost_model *m)
{
    if (m->nr == MOST) {
        int i = m->next;
        m->next = (m->next + 1) % MOST;
        free(m->row[i]);
        return i;
    }
    if (m->nr == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->sample = xrealloc(m->sample, (size_t)m->cap * sizeof *m->sample);
        m->row = xrealloc(m->row, (size_t)m->cap * sizeof *m->row);
    }
    return m->nr++;
}

void cost_model_add(struct cost_model *m, int task, const float (*row)[FEATURES], int nr_rows,
                    double cost_ns)
{
    if (task >= m->nr_tasks) {
        m->best_ns = xrealloc(m->best_ns, (size_t)(task + 1) * sizeof *m->best_ns);
        m->least = xrealloc(m->least, (size_t)(task + 1) * sizeof *m->least);
        for (; m->nr_tasks <= task; m->nr_tasks++)
            m->best_ns[m->nr_tasks] = m->least[m->nr_tasks] = INFINITY;
    }
    double est = cost_model_estimate(row, nr_rows);
    m->best_ns[task] = fmin(m->best_ns[task], cost_ns);
    m->least[task] = fmin(m->least[task], est);
    int i = place(m);
    m->sample[i] = (struct sample){task, nr_rows, cost_ns, est, guess(m, task, row, nr_rows, est)};
    m->row[i] = xmalloc((size_t)nr_rows * sizeof *row);
    memcpy(m->row[i], row, (size_t)nr_rows * sizeof *row);
    m->told = hash64(m->told, &task, sizeof task);
    m->told = hash64(m->told, &cost_ns, sizeof cost_ns);
    m->told = hash64(m->told, row, (size_t)nr_rows * sizeof *row);
    m->added++;
    GROW(m->fresh, m->nr_fresh, m->cap_fresh);
    m->fresh[m->nr_fresh++] = i;
}

/* How well the model had ranked what came since it learned. */
static void look_back(const struct cost_model *m, struct cost_model_news *news)
{
    int right = 0;
    for (int i = 0; i < m->nr_fresh; i++) {
        const struct sample *a = &m->sample[m->fresh[i]];
        for (int j = i - 1; j >= 0 && i - j <= MAX_RIVALS; j--) {
            const struct sample *b = &m->sample[m->fresh[j]];
            if (a->task != b->task || isnan(a->guess) || isnan(b->guess) ||
                a->cost_ns == b->cost_ns)
                continue;
            news->nr_pairs++;
            right += (a->guess > b->guess) == (a->cost_ns < b->cost_ns);
        }
    }
    news->right = news->nr_pairs ? (double)right / news->nr_pairs : 0;
}

static void *learn(void *arg)
{
    struct cost_model *m = arg;
    int64_t since = clock_thread_cpu_ns();
    m->job.trees = trees_grow((const float(*)[FEATURES])m->job.row, m->job.first, m->job.nr,
                              m->job.label, m->job.weight, &m->job.err);
    m->job.news.train_ns = clock_thread_cpu_ns() - since;
    return NULL;
}

static double speed(const struct cost_model *m, const struct sample *s)
{
    return isfinite(s->cost_ns) ? m->best_ns[s->task] / s->cost_ns : 0;
}

static double weight(double speed)
{
    return fmax(speed, LEAST_WEIGHT);
}

/* The scales of least weighted squared error. */
static double *fit_scales(const struct cost_model *m)
{
    double *scale = xcalloc((size_t)m->nr_tasks + 1, sizeof *scale);
    double *square = xcalloc((size_t)m->nr_tasks + 1, sizeof *square);
    for (int i = 0; i < m->nr; i++) {
        const struct sample *s = &m->sample[i];
        double x = speed(m, s), w = weight(x) / s->estimate;
        if (x > 0) {
            scale[s->task] += w * x;
            square[s->task] += w / s->estimate;
        }
    }
    for (int i = 0; i < m->nr_tasks; i++)
        scale[i] = square[i] > 0 ? scale[i] / square[i] : 0;
    free(square);
    return scale;
}

static void job_fill(struct cost_model *m)
{
    size_t nr = (size_t)m->nr;
    m->job.nr = m->nr;
    m->job.first = xmalloc((nr + 1) * sizeof *m->job.first);
    m->job.label = xmalloc(nr * sizeof *m->job.label);
    m->job.weight = xmalloc(nr * sizeof *m->job.weight);
    m->job.scale = fit_scales(m);
    m->job.nr_tasks = m->nr_tasks;
    m->job.first[0] = 0;
    for (int i = 0; i < m->nr; i++) {
        const struct sample *s = &m->sample[i];
        m->job.first[i + 1] = m->job.first[i] + s->nr_rows;
        double x = speed(m, s), scale = m->job.scale[s->task];
        m->job.label[i] = (float)(x - base_speed(scale > 0 ? scale : s->estimate, s->estimate));
        m->job.weight[i] = (float)weight(x);
    }
    m->job.news.nr = m->nr;
    /* What the numbers are made of is part of their name: another version may make others of it. */
    m->job.news.data = hash64(m->told, m->job.label, nr * sizeof *m->job.label);
    m->job.news.data = hash64(m->job.news.data, m->job.weight, nr * sizeof *m->job.weight);
}

static void job_fill_rows(struct cost_model *m)
{
    m->job.row = xmalloc((size_t)m->job.first[m->nr] * sizeof *m->job.row);
    for (int i = 0; i < m->nr; i++)
        memcpy(m->job.row[m->job.first[i]], m->row[i],
               (size_t)m->sample[i].nr_rows * sizeof *m->job.row);
}

/* Trees that were grown from these data before are those that would grow now; or, where that was
 * another XGBoost, those by which the session decided. */
static bool recall(struct cost_model *m)
{
    struct cost_model_news *news = &m->job.news;
    struct strbuf bytes = {0};
    if (m->find && m->find(m->find_ctx, news->data, &bytes))
        m->job.trees = trees_read(strbuf_text(&bytes), bytes.len, &news->refused);
    strbuf_release(&bytes);
    news->recalled = m->job.trees != NULL;
    return news->recalled;
}

static bool start_thread(struct cost_model *m)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* workers take no signals */
    bool ok = pthread_create(&m->thread, NULL, learn, m) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

bool cost_model_learn(struct cost_model *m)
{
    int64_t due = m->learned ? (int64_t)(GROWTH * (double)m->learned) : WARM_UP;
    if (m->learning || m->added < due)
        return false;
    job_fill(m);
    look_back(m, &m->job.news);
    m->threaded = false;
    if (!recall(m)) {
        job_fill_rows(m);
        m->threaded = start_thread(m);
        if (!m->threaded)
            learn(m); /* then here and now */
    }
    m->learning = true;
    m->learned = m->added;
    m->nr_fresh = 0;
    return true;
}

bool cost_model_settle(struct cost_model *m, struct cost_model_news *news, struct err *e)
{
    if (!m->learning)
        return false;
    if (m->threaded)
        pthread_join(m->thread, NULL);
    m->learning = false;
    bool ok = m->job.trees != NULL;
    if (ok) {
        trees_free(m->trees);
        m->trees = m->job.trees;
        m->job.trees = NULL;
        free(m->scale);
        m->scale = m->job.scale;
        m->nr_scales = m->job.nr_tasks;
        m->job.scale = NULL;
    } else {
        err_set(e, m->job.err.code, "%s", m->job.err.msg);
    }
    if (news)
        *news = m->job.news;
    job_release(m);
    return ok;
}

void cost_model_write(const struct cost_model *m, struct strbuf *out)
{
    if (m->trees)
        trees_write(m->trees, out);
}

int cost_model_size(const struct cost_model *m)
{
    return m->nr;
}

/* Estimates of some candidates, and of their rows what the trees say; these are left out where
 * there are none yet. */
static void predict_some(struct cost_model *m, const struct space *s, const struct candidate *c,
                         int nr, float (*row)[FEATURES], double *est, float *trees)
{
    int first[CHUNK + 1] = {0};
    for (int i = 0; i < nr; i++) {
        const struct sketch *k = s->sketch[c[i].sketch];
        first[i + 1] = first[i] + k->features(k, &c[i], row + first[i]);
        est[i] = cost_model_estimate((const float(*)[FEATURES])(row + first[i]),
                                     first[i + 1] - first[i]);
        trees[i] = 0;
    }
    if (m->trees)
        trees_predict(m->trees, (const float(*)[FEATURES])row, first, nr, trees);
}

void cost_model_predict(struct cost_model *m, int task, const struct space *s,
                        const struct candidate *c, int nr, double *out)
{
    float(*row)[FEATURES] = xmalloc((size_t)CHUNK * FEATURE_ROWS * sizeof *row);
    float *trees = xmalloc((size_t)nr * sizeof *trees);
    for (int at = 0; at < nr; at += CHUNK)
        predict_some(m, s, c + at, nr - at < CHUNK ? nr - at : CHUNK, row, out + at, trees + at);
    double least = INFINITY;
    for (int i = 0; i < nr; i++)
        least = fmin(least, out[i]);
    double scale = scale_of(m, task, least);
    for (int i = 0; i < nr; i++)
        out[i] = fmin(fmax(base_speed(scale, out[i]) + (double)trees[i], 0), 1);
    free(row);
    free(trees);
}

void lessons_add(struct lessons *l, int task, const float (*row)[FEATURES], int nr_rows,
                 double cost_ns)
{
    GROW(l->v, l->nr, l->cap);
    struct lesson *one = &l->v[l->nr++];
    *one = (struct lesson){task, nr_rows, cost_ns, xmalloc((size_t)nr_rows * sizeof *row)};
    memcpy(one->row, row, (size_t)nr_rows * sizeof *row);
}

void lessons_release(struct lessons *l)
{
    for (int i = 0; i < l->nr; i++)
        free(l->v[i].row);
    free(l->v);
    *l = (struct lessons){0};
}
