/* The yardstick for people: the work of doral-otf where everybody who arrives has features, written by hand in C.
 *
 *     cc -std=c11 -O3 -march=native -fno-math-errno -fno-trapping-math -o people people.c -lm
 *     ./people INPUT REPEATS        one line of JSON
 *
 * INPUT is written by people_vs_c.py. The program is for what that file plays: one class, numbers only, all arms at one
 * price, answers that are told. It keeps the same sums and does the same statistics: lines of arms around one that they
 * share, with variances that move by Fisher scoring; return curves, and a shift of them by features; open decisions
 * narrow the bonus; all who came lately are valued at every look, and LP_m is solved over them in order of what they
 * are worth. It is written for speed as one would write it in C, not to round as the engine does, so decisions differ
 * now and then, and what it earns is compared instead.
 */

#define _XOPEN_SOURCE 700

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LANES 8 /* rows over arms are padded with zeros to a multiple of this */
#define FOR(i, n) for (int64_t i = 0; i < (n); i++)

enum { MAGIC = 0x50504c45, NOBODY = -1, FIRST_PEOPLE = 32, LOOKS = 32, READ_EVERY = 32, FEWEST = 10, MOST = 2000 };

static const double GUESS = 0.1, FLOOR = 1e-9, NOISE_DEGREES = 20.0, FARTHEST = 10.0, NEVER = INFINITY;
static const double SHIFT_GUESS = 0.04, SHIFT_LEAST = 1e-6, SHIFT_MOST = 1.0, WELL_KNOWN = 10.0, SPREAD = 0.3;

typedef struct {
    int64_t magic, n_people, n_numbers, n_arms, horizon, n_ages, reservoir, look_rounds, seed;
    double budget, deadline, noise_sd, exploration, return_optimism, start_share;
} header;

typedef struct {
    header h;
    const double *traits;  /* (N, numbers) */
    const double *means;   /* (N, A) */
    const double *minimum; /* (A,) of the Pareto laws */
    const double *shape;   /* (A,) */
    const double *ages;    /* (G,) */
    const int64_t *who;    /* (T,) the tape */
    const double *noise, *wait;
} input;

typedef struct {
    double time, answer_age, expected;
    int64_t arm;
    bool is_settled;
} decision;

typedef struct {
    double reward, delay;
    int64_t next;
} entry;

typedef struct {
    double value;
    int64_t row;
} edge;

typedef struct {
    const input *in;
    int64_t p, A, room, G, R, pairs; /* columns, arms, arms padded, ages, people who are kept */
    /* sums */
    double *gram, *moment, *open, *crowd, *count, *reward, *square;
    /* lines */
    double *mean, *cov, *narrowed, *kept, *own, *common, *noise, *hyper_mean, *hyper_cov;
    double *mean_by_column, *cov_by_pair, *narrowed_by_pair, *pair;
    double *m1, *m2, *m3, *m4, *v1, *v2; /* scratch */
    double scale, kin, noise_all, doubt, second_moment;
    bool has_started;
    /* who came */
    double *traits, *x;                                 /* (R, numbers), (R, p) */
    double *centre, *unit, *shift, *spread;             /* (numbers,) */
    double *estimate, *variance, *narrow, *value, *hope; /* (R, room) but value (R,); hope is psi */
    int64_t *best;
    double *pulls;
    bool is_known;
    int64_t came, next_look, round_then, decisions_then;
    edge *edges; /* sorted, dearest first */
    int64_t n_edges;
    /* returns */
    double *at_risk, *returned, *survival; /* (A, G) */
    int64_t *cursor;
    double *tau, *tau_error, *log_open;
    double cutoff;
    double *gamma, *precision, *says; /* of the shift */
    double shift_spread;
    /* the clock, the budget, open decisions */
    int64_t round, next, settled, mask, learned, calibrate_at, read_at;
    double budget_left;
    decision *ring;
    double *ring_x;
    double *tries, enough;
    bool starts;
    /* the book */
    int64_t *first_due, *last_due;
    entry *entries;
    double earned;
    int64_t served;
} run;

static void die(const char *message) {
    fprintf(stderr, "people: %s\n", message);
    exit(1);
}

static void *room(size_t count, size_t size) {
    const size_t bytes = (count * size + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, bytes);
    if (memory == NULL) die("out of memory");
    memset(memory, 0, bytes);
    return memory;
}

static double *numbers(int64_t n) { return room((size_t)n, sizeof(double)); }

/* --- matrices ---------------------------------------------------------------------------------------------------- */

static void add_square(double *restrict m, const double *restrict x, double weight, int64_t p) {
    FOR(i, p) {
        const double step = weight * x[i];
        FOR(l, p) m[i * p + l] += step * x[l];
    }
}

static void multiply(const double *restrict a, const double *restrict b, double *restrict c, int64_t n) {
    FOR(i, n) {
        FOR(l, n) c[i * n + l] = 0.0;
        FOR(k, n) {
            const double step = a[i * n + k];
            FOR(l, n) c[i * n + l] += step * b[k * n + l];
        }
    }
}

/* a^T b */
static void multiply_transposed(const double *restrict a, const double *restrict b, double *restrict c, int64_t n) {
    memset(c, 0, (size_t)(n * n) * sizeof(double));
    FOR(k, n) FOR(i, n) {
        const double step = a[k * n + i];
        FOR(l, n) c[i * n + l] += step * b[k * n + l];
    }
}

static void factor(const double *restrict m, double *restrict f, int64_t n) {
    FOR(i, n) {
        FOR(l, i + 1) {
            double total = m[i * n + l];
            FOR(k, l) total -= f[i * n + k] * f[l * n + k];
            f[i * n + l] = i == l ? sqrt(total > 0.0 ? total : 0.0) : f[l * n + l] > 0.0 ? total / f[l * n + l] : 0.0;
        }
        for (int64_t l = i + 1; l < n; l++) f[i * n + l] = 0.0;
    }
}

static void invert(const double *restrict m, double *restrict f, double *restrict inverse, int64_t n) {
    factor(m, f, n);
    FOR(i, n) {
        double *const row = inverse + i * n;
        FOR(l, n) row[l] = i == l;
        FOR(k, i) FOR(l, k + 1) row[l] -= f[i * n + k] * inverse[k * n + l];
        const double by = 1.0 / f[i * n + i];
        FOR(l, n) row[l] *= by;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        double *const row = inverse + i * n;
        for (int64_t k = i + 1; k < n; k++) FOR(l, n) row[l] -= f[k * n + i] * inverse[k * n + l];
        const double by = 1.0 / f[i * n + i];
        FOR(l, n) row[l] *= by;
    }
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

/* T_a, what the answers of an arm leave of the prior. */
static void weigh_arm(run *r, int64_t a) {
    const int64_t p = r->p;
    const double *const gram = r->gram + a * p * p;
    FOR(i, p) r->v1[i] = sqrt(r->own[i]);
    FOR(i, p) {
        FOR(l, p) r->m1[i * p + l] = r->v1[i] * r->v1[l] * gram[i * p + l] / r->noise[a];
        r->m1[i * p + i] += 1.0;
    }
    invert(r->m1, r->m2, r->m3, p);
    FOR(i, p) FOR(l, p) r->kept[(a * p + i) * p + l] = r->m3[i * p + l] * r->v1[l] / r->v1[i];
}

/* What arms share. */
static void learn_common(run *r) {
    const int64_t p = r->p;
    memset(r->m2, 0, (size_t)(p * p) * sizeof(double));
    FOR(i, p) {
        r->m2[i * p + i] = 1.0 / r->common[i];
        r->v1[i] = 0.0;
    }
    FOR(a, r->A) {
        const double *const kept = r->kept + a * p * p, *const moment = r->moment + a * p;
        multiply(kept, r->gram + a * p * p, r->m1, p);
        const double by = 1.0 / r->noise[a];
        FOR(i, p) {
            double total = 0.0;
            FOR(l, p) total += kept[i * p + l] * moment[l];
            r->v1[i] += by * total;
            FOR(l, p) r->m2[i * p + l] += 0.5 * by * (r->m1[i * p + l] + r->m1[l * p + i]);
        }
    }
    invert(r->m2, r->m1, r->hyper_cov, p);
    FOR(i, p) {
        double total = 0.0;
        FOR(l, p) total += r->hyper_cov[i * p + l] * r->v1[l];
        r->hyper_mean[i] = total;
    }
}

static void set_arm(run *r, int64_t a) {
    const int64_t p = r->p;
    const double *const kept = r->kept + a * p * p, *const moment = r->moment + a * p;
    multiply(r->hyper_cov, kept, r->m1, p);
    multiply_transposed(kept, r->m1, r->m2, p);
    FOR(i, p) r->mean[a * p + i] = 0.0;
    FOR(l, p) FOR(i, p) r->mean[a * p + i] += kept[l * p + i] * r->hyper_mean[l];
    FOR(i, p) {
        double total = 0.0;
        FOR(l, p) total += kept[i * p + l] * moment[l];
        r->mean[a * p + i] += r->own[i] * total / r->noise[a];
        FOR(l, p)
        r->cov[(a * p + i) * p + l] = 0.5 * (r->own[i] * kept[i * p + l] + r->own[l] * kept[l * p + i] +
                                             r->m2[i * p + l] + r->m2[l * p + i]);
    }
}

/* cov, as if open decisions were answered. */
static void narrow_arm(run *r, int64_t a) {
    const int64_t p = r->p;
    double *const narrowed = r->narrowed + a * p * p;
    const double *const open = r->open + a * p * p, *const cov = r->cov + a * p * p;
    if (!(open[0] > 0.0)) {
        memcpy(narrowed, cov, (size_t)(p * p) * sizeof(double));
        return;
    }
    factor(cov, r->m1, p);
    multiply(open, r->m1, r->m2, p);
    multiply_transposed(r->m1, r->m2, r->m3, p);
    FOR(i, p) {
        FOR(l, p) r->m3[i * p + l] /= r->noise[a];
        r->m3[i * p + i] += 1.0;
    }
    invert(r->m3, r->m2, r->m4, p);
    multiply(r->m1, r->m4, r->m2, p);
    FOR(i, p) FOR(l, p) r->m3[i * p + l] = r->m1[l * p + i];
    multiply(r->m2, r->m3, narrowed, p);
}

static void lay_out(run *r) {
    const int64_t p = r->p, n = r->room;
    FOR(a, r->A) {
        int64_t t = 0;
        FOR(i, p) {
            r->mean_by_column[i * n + a] = r->mean[a * p + i];
            FOR(l, i + 1) {
                const double times = i == l ? 1.0 : 2.0;
                r->cov_by_pair[t * n + a] = times * r->cov[(a * p + i) * p + l];
                r->narrowed_by_pair[t * n + a] = times * r->narrowed[(a * p + i) * p + l];
                t++;
            }
        }
    }
}

static double above_zero(double estimate, double information) {
    const double error = sqrt(2.0 / information), z = fmax(estimate / error, -6.0);
    return error * (z + exp(-0.5 * z * z) / sqrt(2.0 * M_PI) / (0.5 * erfc(-z / sqrt(2.0))));
}

static double usual(const run *r, const double *variance, double guess, const double *score, const double *known) {
    double total = 1.0 / guess, information = 1.0 / (guess * guess);
    for (int64_t i = 1; i < r->p; i++) {
        total += score[i] + known[i] * variance[i];
        information += known[i];
    }
    return fmax(above_zero(total / information, information), FLOOR * r->scale);
}

static double moved(const run *r, double variance, double guess, double score, double known) {
    const double size = fmax(guess, variance);
    score += (guess - variance) / (size * size);
    known += 1.0 / (size * size);
    return fmin(fmax(above_zero(variance + score / known, known), FLOOR * r->scale), 4.0 * r->scale);
}

/* A step of Fisher scoring. */
static void move_variances(run *r) {
    const int64_t p = r->p;
    const double guess = GUESS * r->scale, each = guess / (double)(p > 1 ? p - 1 : 1);
    double *const score = r->v1, *const known = r->v2;
    FOR(i, p) score[i] = known[i] = 0.0;
    FOR(a, r->A) {
        const double *const kept = r->kept + a * p * p, *const moment = r->moment + a * p;
        multiply(kept, r->gram + a * p * p, r->m1, p);
        FOR(i, p * p) r->m1[i] /= r->noise[a];
        multiply(r->m1, r->hyper_cov, r->m2, p);
        FOR(i, p) {
            double pull = 0.0, told = r->m1[i * p + i];
            FOR(l, p) {
                pull += kept[i * p + l] * moment[l] / r->noise[a] - r->m1[i * p + l] * r->hyper_mean[l];
                told -= r->m2[i * p + l] * r->m1[l * p + i];
            }
            told = fmax(told, 0.0);
            score[i] += pull * pull - told;
            known[i] += told * told;
        }
    }
    double as_usual = usual(r, r->own, each, score, known);
    FOR(i, p) r->own[i] = moved(r, r->own[i], i == 0 ? guess : as_usual, score[i], known[i]);
    FOR(i, p) {
        const double variance = r->common[i], pull = r->hyper_mean[i] / variance;
        const double told = fmax((1.0 - r->hyper_cov[i * p + i] / variance) / variance, 0.0);
        score[i] = pull * pull - told;
        known[i] = told * told;
    }
    as_usual = usual(r, r->common, each, score, known);
    for (int64_t i = 1; i < p; i++) r->common[i] = moved(r, r->common[i], as_usual, score[i], known[i]);
}

/* What the line leaves of the squares of an arm, and of its degrees of freedom. */
static void residual(const run *r, int64_t a, double *left, double *degrees) {
    const int64_t p = r->p;
    const double *const gram = r->gram + a * p * p, *const mean = r->mean + a * p, *const cov = r->cov + a * p * p;
    double used = 0.0;
    *left = r->square[a];
    FOR(i, p) {
        double through = 0.0;
        FOR(l, p) {
            through += gram[i * p + l] * mean[l];
            used += cov[i * p + l] * gram[i * p + l];
        }
        *left += mean[i] * (through - 2.0 * r->moment[a * p + i]);
    }
    *left = fmax(*left, 0.0);
    *degrees = fmax(r->count[a] - fmin(used / r->noise[a], 0.9 * r->count[a]), 0.0);
}

static void calibrate(run *r) {
    const int64_t p = r->p;
    double n = 0.0, reward = 0.0, square = 0.0, inside = 0.0, degrees = 0.0, left, own;
    r->calibrate_at = r->learned + (r->learned / 10 < FEWEST ? FEWEST : r->learned / 10 > MOST ? MOST : r->learned / 10);
    FOR(a, r->A) {
        n += r->count[a];
        reward += r->reward[a];
        square += r->square[a];
        if (r->count[a] > 0.0) {
            residual(r, a, &left, &own);
            inside += left;
            degrees += own;
        }
    }
    if (!(square > 0.0)) return;
    r->second_moment = square / n;
    const double overall = fmax(r->second_moment - reward / n * (reward / n), 0.0);
    r->noise_all = fmax((inside + overall) / (degrees + 1.0), 1e-12 * r->second_moment);
    r->doubt = (inside + r->second_moment) / (degrees + 1.0);
    FOR(a, r->A) {
        residual(r, a, &left, &own);
        r->v1[a] = fmax((left + NOISE_DEGREES * r->noise_all) / (own + NOISE_DEGREES), 1e-12 * r->second_moment);
    }
    FOR(a, r->A) r->noise[a] = r->v1[a];
    const double noise = fmin(r->noise_all, r->second_moment);
    const double of_means = r->second_moment - noise + noise * fmin(1.0, (double)r->A / n);
    r->scale = fmin(r->second_moment, 4.0 * of_means);
    if (!r->has_started) {
        const double each = GUESS * r->scale / (double)(p > 1 ? p - 1 : 1);
        FOR(i, p) r->own[i] = r->common[i] = each;
        r->own[0] = GUESS * r->scale;
        r->has_started = true;
    }
    r->common[0] = r->scale;
    for (int step = 0; step < 2; step++) {
        FOR(a, r->A) weigh_arm(r, a);
        learn_common(r);
        FOR(a, r->A) set_arm(r, a);
        move_variances(r);
    }
    double total = 0.0; /* for which share of all counts what is learned from one */
    FOR(a, r->A) {
        multiply(r->cov + a * p * p, r->crowd, r->m1, p);
        double once = 0.0, twice = 0.0;
        FOR(i, p) {
            once += r->m1[i * p + i];
            FOR(l, p) twice += r->m1[i * p + l] * r->m1[l * p + i];
        }
        total += once > 0.0 ? twice / (once * once) : 1.0;
    }
    r->kin = fmin(fmax(total / (double)r->A, 0.0), 1.0);
    r->next_look = 0;
}

/* --- returns ----------------------------------------------------------------------------------------------------- */

/* Every decision is counted at every age that it has passed. */
static void watch(run *r) {
    const double clock = (double)r->round + 1.0;
    FOR(g, r->G) {
        const double start = g > 0 ? r->in->ages[g - 1] : -INFINITY, end = r->in->ages[g];
        int64_t d = r->cursor[g];
        for (; d < r->next && clock - r->ring[d & r->mask].time > end; d++) {
            const decision *const one = r->ring + (d & r->mask);
            r->at_risk[one->arm * r->G + g] += one->answer_age > start;
            r->returned[one->arm * r->G + g] += (one->answer_age > start) & (one->answer_age <= end);
        }
        r->cursor[g] = d;
    }
}

static double returned_by(const run *r, int64_t a, double age) {
    const double *const s = r->survival + a * r->G, *const ages = r->in->ages;
    double before = 1.0, start = 0.0;
    int64_t g = 0;
    while (g < r->G && ages[g] <= age) {
        before = s[g];
        start = ages[g++];
    }
    if (g == r->G || age <= start) return 1.0 - before;
    return 1.0 - (before + (s[g] - before) * (age - start) / (ages[g] - start));
}

static void read_returns(run *r) {
    const int64_t G = r->G;
    double total = 0.0;
    FOR(a, r->A) {
        double survival = 1.0;
        FOR(g, G) {
            const double n = r->at_risk[a * G + g];
            survival *= n > 0.0 ? 1.0 - r->returned[a * G + g] / n : 0.0;
            r->survival[a * G + g] = survival;
        }
        total += r->at_risk[a * G] * (1.0 - survival);
    }
    if (total > 0.0)
        FOR(g, G) {
            double come = 0.0;
            FOR(a, r->A) come += r->at_risk[a * G] * (1.0 - r->survival[a * G + g]);
            if (come >= total) {
                r->cutoff = r->in->ages[g];
                break;
            }
        }
    double n = 0.0, mean = 0.0, square = 0.0, noise = 0.0;
    FOR(a, r->A) {
        const double tau = returned_by(r, a, r->in->h.deadline), known = r->at_risk[a * G];
        r->tau[a] = tau;
        r->tau_error[a] = sqrt((tau * (1.0 - tau) + 1.0 / (known + 1.0)) / (known + 1.0));
        if (known >= WELL_KNOWN) {
            n += 1.0;
            mean += tau;
            square += tau * tau;
            noise += r->tau_error[a] * r->tau_error[a];
        }
    }
    if (n >= 3.0) {
        mean /= n;
        const double spread = (fmax(square - n * mean * mean - (n - 1.0) * noise / n, 0.0) + SPREAD * SPREAD) / n;
        FOR(a, r->A) {
            const double keep = spread / (spread + r->tau_error[a] * r->tau_error[a]);
            r->tau[a] = mean + keep * (r->tau[a] - mean);
            r->tau_error[a] *= sqrt(keep);
        }
    }
}

static double score_shift(const run *r, const double *x, int64_t first) {
    double total = 0.0;
    for (int64_t i = first; i < r->p; i++) total += r->gamma[i] * x[i];
    return fmin(fmax(total, -log(8.0)), log(8.0));
}

/* Proportional hazards, one step of a Poisson regression each. */
static void count_shift(run *r, const double *x, const decision *d) {
    const double share = returned_by(r, d->arm, fmin(d->answer_age, r->cutoff));
    const double score = score_shift(r, x, 0), expected = -log(fmax(1.0 - share, 1e-6)) * exp(score);
    const double pull = (d->answer_age <= r->cutoff) - expected + expected * score;
    FOR(i, r->p) r->says[i] += x[i] * pull;
    add_square(r->precision, x, expected, r->p);
}

static void solve_shift(run *r) {
    const int64_t p = r->p;
    if (!(r->precision[0] > 0.0)) return;
    memcpy(r->m1, r->precision, (size_t)(p * p) * sizeof(double));
    FOR(i, p) r->m1[i * p + i] += 1.0 / r->shift_spread;
    invert(r->m1, r->m2, r->m3, p);
    const double s = r->shift_spread, size = fmax(s, SHIFT_GUESS);
    double score = (SHIFT_GUESS - s) / (size * size), information = 1.0 / (size * size);
    FOR(i, p) {
        double total = 0.0;
        FOR(l, p) total += r->m3[i * p + l] * r->says[l];
        r->gamma[i] = total;
        if (i == 0) continue;
        const double known = fmax((1.0 - r->m3[i * p + i] / s) / s, 0.0);
        score += total / s * (total / s) - known;
        information += known * known;
    }
    r->shift_spread = fmin(fmax(above_zero(s + score / information, information), SHIFT_LEAST), SHIFT_MOST);
}

/* --- who arrives ------------------------------------------------------------------------------------------------- */

static void set_columns(const run *r, const double *traits, double *x) {
    x[0] = 1.0;
    for (int64_t i = 1; i < r->p; i++) {
        if (!r->is_known) {
            x[i] = 0.0;
            continue;
        }
        const double z = fmin(fmax((traits[i - 1] - r->centre[i - 1]) / r->unit[i - 1], -FARTHEST), FARTHEST);
        x[i] = (z - r->shift[i - 1]) / r->spread[i - 1];
    }
}

static void know_columns(run *r) {
    const int64_t m = r->p - 1, n = r->came;
    r->is_known = true;
    FOR(i, m) {
        double mean = 0.0, square = 0.0, shift = 0.0, spread = 0.0;
        FOR(k, n) mean += r->traits[k * m + i] / (double)n;
        FOR(k, n) square += pow(r->traits[k * m + i] - mean, 2.0) / (double)n;
        r->centre[i] = mean;
        r->unit[i] = square > 0.0 ? sqrt(square) : mean != 0.0 ? fabs(mean) : 1.0;
        for (int pass = 0; pass < 2; pass++)
            FOR(k, n) {
                const double z = fmin(fmax((r->traits[k * m + i] - mean) / r->unit[i], -FARTHEST), FARTHEST);
                if (pass == 0) shift += z / (double)n;
                else spread += (z - shift) * (z - shift) / (double)n;
            }
        r->shift[i] = shift;
        r->spread[i] = spread > 1e-12 ? sqrt(spread) : 1.0;
    }
    FOR(k, n) set_columns(r, r->traits + k * m, r->x + k * r->p);
    r->next_look = 0;
}

/* What the lines say of the one in this row: eight arms at a time, whose sums stay in registers. */
static void value_row(run *r, int64_t row) {
    const int64_t p = r->p, n = r->room;
    const double *const restrict x = r->x + row * p, *const restrict means = r->mean_by_column;
    const double *const restrict of_cov = r->cov_by_pair, *const restrict of_narrowed = r->narrowed_by_pair;
    double *const restrict pair = r->pair;
    int64_t t = 0;
    FOR(i, p) FOR(l, i + 1) pair[t++] = x[i] * x[l];
    for (int64_t first = 0; first < n; first += LANES) {
        double mean[LANES] = {0}, variance[LANES] = {0}, narrowed[LANES] = {0};
        FOR(i, p) FOR(a, LANES) mean[a] += means[i * n + first + a] * x[i];
        FOR(k, t) FOR(a, LANES) {
            variance[a] += of_cov[k * n + first + a] * pair[k];
            narrowed[a] += of_narrowed[k * n + first + a] * pair[k];
        }
        memcpy(r->estimate + row * n + first, mean, sizeof mean);
        memcpy(r->variance + row * n + first, variance, sizeof variance);
        memcpy(r->narrow + row * n + first, narrowed, sizeof narrowed);
    }
}

/* values = tau * estimate + both errors; the best arm is what LP_m may buy, as all have one price. */
static void score_row(run *r, int64_t row) {
    const header *const h = &r->in->h;
    const int64_t n = r->room;
    const double *const estimate = r->estimate + row * n, *const narrow = r->narrow + row * n;
    const double faster = exp(score_shift(r, r->x + row * r->p, 1));
    const double doubts = h->return_optimism * sqrt(log(M_E + r->pulls[row]));
    const double reach = r->kin * (double)h->horizon / (r->doubt > 0.0 ? r->doubt : 1.0) / 2.3;
    double top = -INFINITY;
    int64_t best = 0;
    FOR(a, r->A) {
        const double tau = 1.0 - exp(faster * r->log_open[a]), square = fmax(narrow[a], 0.0);
        const double of_reward = tau * h->exploration * sqrt(square * log1p(reach * square));
        const double of_return = doubts * r->tau_error[a] * fmax(estimate[a], 0.0);
        const double value = tau * estimate[a] + sqrt(of_reward * of_reward + of_return * of_return);
        r->hope[row * n + a] = tau;
        if (value > top) {
            top = value;
            best = a;
        }
    }
    r->value[row] = top;
    r->best[row] = best;
}

static void revalue(run *r, int64_t row) {
    value_row(r, row);
    r->pulls[row] = r->kin * (double)r->decisions_then;
    score_row(r, row);
}

static int by_value(const void *one, const void *two) {
    const edge *const a = one, *const b = two;
    if (a->value != b->value) return a->value > b->value ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* The first edge that is not before such a one. */
static int64_t place_of(const run *r, double value, int64_t row) {
    int64_t low = 0, high = r->n_edges;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        const edge *const e = r->edges + middle;
        if (e->value > value || (e->value == value && e->row < row)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void take_out(run *r, int64_t row, double value) {
    const int64_t at = place_of(r, value, row);
    if (at >= r->n_edges || r->edges[at].row != row) return; /* worth nothing */
    r->n_edges--;
    memmove(r->edges + at, r->edges + at + 1, (size_t)(r->n_edges - at) * sizeof(edge));
}

static void put_in(run *r, int64_t row) {
    if (!(r->value[row] > 0.0)) return;
    const int64_t at = place_of(r, r->value[row], row);
    memmove(r->edges + at + 1, r->edges + at, (size_t)(r->n_edges - at) * sizeof(edge));
    r->edges[at] = (edge){r->value[row], row};
    r->n_edges++;
}

static void look(run *r) {
    const int64_t share = r->came / LOOKS, wait = share < r->in->h.look_rounds ? share : r->in->h.look_rounds;
    r->next_look = r->came + (wait > 1 ? wait : 1);
    r->round_then = r->round;
    r->decisions_then = r->next;
    FOR(a, r->A) {
        if (r->has_started) {
            weigh_arm(r, a);
            set_arm(r, a);
        }
        narrow_arm(r, a);
        r->log_open[a] = r->tau[a] < 1.0 ? log1p(-r->tau[a]) : -INFINITY;
    }
    solve_shift(r);
    lay_out(r);
    const int64_t n = r->came < r->R ? r->came : r->R;
    r->n_edges = 0;
    FOR(row, n) {
        revalue(r, row);
        if (r->value[row] > 0.0) r->edges[r->n_edges++] = (edge){r->value[row], row};
    }
    qsort(r->edges, (size_t)r->n_edges, sizeof(edge), by_value);
}

static int64_t admit(run *r, int64_t who) {
    const int64_t row = r->came % r->R, m = r->p - 1;
    const bool is_new = r->came < r->R;
    const double before = r->value[row];
    r->came++;
    memcpy(r->traits + row * m, r->in->traits + who * m, (size_t)m * sizeof(double));
    if (!r->is_known && r->came >= FIRST_PEOPLE) know_columns(r);
    set_columns(r, r->traits + row * m, r->x + row * r->p);
    add_square(r->crowd, r->x + row * r->p, 1.0, r->p);
    if (r->came >= r->next_look) {
        look(r);
        return row;
    }
    if (!is_new) take_out(r, row, before);
    revalue(r, row);
    put_in(r, row);
    return row;
}

/* --- a round ----------------------------------------------------------------------------------------------------- */

static double coin(const run *r) {
    uint64_t z = (uint64_t)r->in->h.seed + (uint64_t)r->round * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int64_t first_try(run *r, double rate, bool *is_skipped) {
    const double most = floor(r->in->h.start_share * r->in->h.budget / (double)r->A);
    const double enough = fmin(r->enough, most);
    int64_t chosen = NOBODY;
    FOR(a, r->A) if (r->tries[a] < enough && (chosen == NOBODY || r->tries[a] < r->tries[chosen])) chosen = a;
    if (chosen == NOBODY) {
        if (r->second_moment > 0.0) r->starts = false;
        return NOBODY;
    }
    *is_skipped = coin(r) >= rate;
    return *is_skipped ? NOBODY : chosen;
}

/* LP_m over those who came lately: all have the same share and the same price. */
static int64_t choose(run *r, int64_t row) {
    if (r->budget_left < 1.0) return NOBODY;
    const double rate = r->budget_left / (double)(r->in->h.horizon - r->round + 1);
    if (r->starts) {
        bool is_skipped = false;
        const int64_t arm = first_try(r, rate, &is_skipped);
        if (arm != NOBODY || is_skipped) return arm;
    }
    if (!(r->value[row] > 0.0)) return NOBODY;
    const double bought = rate * (double)(r->came < r->R ? r->came : r->R);
    const double before = (double)place_of(r, r->value[row], row);
    if (before + 1.0 <= bought) return r->best[row];
    return before < bought && coin(r) < bought - before ? r->best[row] : NOBODY;
}

static void close_open(run *r, int64_t slot) {
    decision *const d = r->ring + slot;
    if (d->expected < 0.0) return;
    add_square(r->open + d->arm * r->p * r->p, r->ring_x + slot * r->p, -d->expected, r->p);
    d->expected = -1.0;
}

static void hear(run *r, int64_t number) {
    const int64_t slot = number & r->mask, p = r->p;
    decision *const d = r->ring + slot;
    const entry *const e = r->entries + number;
    if (e->delay <= r->in->h.deadline) r->earned += e->reward;
    if (number <= r->next - 1 - r->mask) return; /* it has left the ring */
    d->answer_age = e->delay;
    if (!(e->delay <= r->cutoff)) return;
    const double *const x = r->ring_x + slot * p;
    close_open(r, slot);
    add_square(r->gram + d->arm * p * p, x, 1.0, p);
    FOR(i, p) r->moment[d->arm * p + i] += e->reward * x[i];
    r->count[d->arm] += 1.0;
    r->reward[d->arm] += e->reward;
    r->square[d->arm] += e->reward * e->reward;
    r->learned++;
}

static void commit(run *r, int64_t i, int64_t row, int64_t arm) {
    const input *const in = r->in;
    const int64_t slot = r->next & r->mask, p = r->p;
    const double tau = fmin(r->hope[row * r->room + arm], 1.0);
    r->ring[slot] = (decision){.time = (double)(i + 1), .answer_age = NEVER, .expected = tau, .arm = arm};
    memcpy(r->ring_x + slot * p, r->x + row * p, (size_t)p * sizeof(double));
    add_square(r->open + arm * p * p, r->x + row * p, tau, p);
    r->budget_left -= 1.0;
    r->tries[arm] += 1.0;
    const double before = r->value[row]; /* one more who was served: the doubt about returns has grown */
    take_out(r, row, before);
    r->pulls[row] += 1.0;
    score_row(r, row);
    put_in(r, row);
    const double reward = in->means[in->who[i] * r->A + arm] + in->h.noise_sd * in->noise[i];
    const double delay = fmax(1.0, ceil(in->minimum[arm] * exp(-log1p(-in->wait[i]) / in->shape[arm])));
    r->entries[r->next] = (entry){reward, delay, NOBODY};
    const double due = (double)(i + 1) + delay;
    if (due <= (double)in->h.horizon) {
        const int64_t day = (int64_t)due;
        if (r->first_due[day] == NOBODY) r->first_due[day] = r->next;
        else r->entries[r->last_due[day]].next = r->next;
        r->last_due[day] = r->next;
    }
    r->next++;
    r->served++;
}

static void play(run *r) {
    const input *const in = r->in;
    FOR(i, in->h.horizon) {
        const double clock = (double)(i + 1);
        for (int64_t due = r->first_due[i + 1]; due != NOBODY; due = r->entries[due].next) hear(r, due);
        while (r->settled < r->next && clock - r->ring[r->settled & r->mask].time > r->cutoff) {
            const int64_t slot = r->settled++ & r->mask;
            close_open(r, slot);
            count_shift(r, r->ring_x + slot * r->p, r->ring + slot);
        }
        if (r->round >= r->read_at || r->learned >= r->calibrate_at) {
            if (r->learned >= r->calibrate_at) calibrate(r);
            if (r->round >= r->read_at) {
                watch(r);
                r->read_at = (r->round / READ_EVERY + 1) * READ_EVERY;
                read_returns(r);
            }
            if (r->starts && r->second_moment > 0.0) {
                double reward = 0.0, n = 0.0;
                FOR(a, r->A) {
                    reward += r->reward[a];
                    n += r->count[a];
                }
                r->enough = 4.0 * r->doubt / (reward / n * (reward / n));
            }
        }
        const int64_t row = admit(r, in->who[i]);
        r->round++;
        const int64_t arm = choose(r, row);
        if (arm != NOBODY) commit(r, i, row, arm);
    }
}

/* --- set up, time, report ---------------------------------------------------------------------------------------- */

static void read_input(const char *path, input *in) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) die("cannot open the input");
    if (fread(&in->h, sizeof in->h, 1, file) != 1 || in->h.magic != MAGIC) die("not an input of this program");
    const size_t n = (size_t)in->h.n_people, n_arms = (size_t)in->h.n_arms, horizon = (size_t)in->h.horizon;
    const struct {
        const void *where;
        size_t count;
    } arrays[] = {
        {&in->traits, n * (size_t)in->h.n_numbers}, {&in->means, n * n_arms},           {&in->minimum, n_arms},
        {&in->shape, n_arms},                       {&in->ages, (size_t)in->h.n_ages},  {&in->who, horizon},
        {&in->noise, horizon},                      {&in->wait, horizon},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        void *const memory = room(arrays[i].count, 8);
        if (fread(memory, 8, arrays[i].count, file) != arrays[i].count) die("the input is cut short");
        memcpy((void *)(uintptr_t)arrays[i].where, &memory, sizeof memory);
    }
    fclose(file);
}

static run new_run(const input *in) {
    const header *const h = &in->h;
    const int64_t p = h->n_numbers + 1, A = h->n_arms, G = h->n_ages, R = h->reservoir, square = p * p;
    const int64_t wide = (A + LANES - 1) / LANES * LANES, pairs = p * (p + 1) / 2;
    run r = {.in = in, .p = p, .A = A, .G = G, .R = R, .room = wide, .pairs = pairs, .kin = 1.0};
    double **const by_arm_square[] = {&r.gram, &r.open, &r.cov, &r.narrowed, &r.kept};
    for (size_t i = 0; i < 5; i++) *by_arm_square[i] = numbers(A * square);
    double **const squares[] = {&r.crowd, &r.hyper_cov, &r.m1, &r.m2, &r.m3, &r.m4, &r.precision};
    for (size_t i = 0; i < 7; i++) *squares[i] = numbers(square);
    double **const rows[] = {&r.own,    &r.common, &r.hyper_mean, &r.v1,    &r.v2,  &r.gamma,
                             &r.says,   &r.centre, &r.unit,       &r.shift, &r.spread};
    for (size_t i = 0; i < 11; i++) *rows[i] = numbers(p + A);
    double **const by_arm[] = {&r.count, &r.reward, &r.square, &r.noise, &r.tau, &r.tau_error, &r.log_open, &r.tries};
    for (size_t i = 0; i < 8; i++) *by_arm[i] = numbers(A);
    r.moment = numbers(A * p);
    r.mean = numbers(A * p);
    r.mean_by_column = numbers(p * wide);
    r.cov_by_pair = numbers(pairs * wide);
    r.narrowed_by_pair = numbers(pairs * wide);
    r.pair = numbers(pairs);
    r.traits = numbers(R * p);
    r.x = numbers(R * p);
    double **const by_row[] = {&r.estimate, &r.variance, &r.narrow, &r.hope};
    for (size_t i = 0; i < 4; i++) *by_row[i] = numbers(R * wide);
    r.value = numbers(R);
    r.pulls = numbers(R);
    r.best = room((size_t)R, sizeof(int64_t));
    r.edges = room((size_t)R + 1, sizeof(edge));
    r.at_risk = numbers(A * G);
    r.returned = numbers(A * G);
    r.survival = numbers(A * G);
    r.cursor = room((size_t)G, sizeof(int64_t));
    r.mask = 1;
    while (r.mask < (int64_t)in->ages[G - 1] + 2 * READ_EVERY) r.mask *= 2; /* nobody is asked for who is older */
    r.ring = room((size_t)r.mask, sizeof(decision));
    r.ring_x = numbers(r.mask * p);
    r.mask--;
    r.first_due = room((size_t)h->horizon + 1, sizeof(int64_t));
    r.last_due = room((size_t)h->horizon + 1, sizeof(int64_t));
    r.entries = room((size_t)h->horizon, sizeof(entry));
    r.cutoff = in->ages[G - 1];
    r.budget_left = h->budget;
    r.shift_spread = SHIFT_GUESS;
    r.calibrate_at = 1;
    r.enough = 4.0;
    r.starts = true;
    FOR(day, h->horizon + 1) r.first_due[day] = NOBODY;
    FOR(a, A) {
        r.noise[a] = r.tau[a] = r.tau_error[a] = 1.0;
        FOR(i, p) r.cov[(a * p + i) * p + i] = 1.0;
    }
    FOR(i, p) r.own[i] = 1.0;
    return r;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3) die("usage: people INPUT REPEATS");
    input in = {0};
    read_input(argv[1], &in);
    double best = INFINITY, earned = 0.0;
    int64_t served = 0;
    for (int repeat = 0; repeat < atoi(argv[2]); repeat++) {
        run r = new_run(&in); /* a few times, in a program that ends then */
        const double start = seconds_now();
        play(&r);
        best = fmin(best, seconds_now() - start);
        earned = r.earned;
        served = r.served;
    }
    printf("{\"seconds\": %.9f, \"decisions\": %lld, \"reward\": %.17g}\n", best, (long long)served, earned);
    return 0;
}
