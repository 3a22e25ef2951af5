/* The yardstick: the same work as DORAL's compiled engine, written by hand in C.
 *
 *     cc -std=c11 -O3 -march=native -fno-math-errno -fno-trapping-math -ffp-contract=off -o engine engine.c -lm
 *     ./engine INPUT REPEATS        one line of JSON
 *
 * Two policies, each with its own loop: D-LinUCB (`play_dlinucb`) and DORAL (`play_doral`). INPUT is written by
 * engine_vs_c.py; `read_input` below is its format. Sizes are known at run time only, as in the engine.
 *
 * Both sides must make the same decisions, bit for bit. So sums are taken in the engine's order, and a * b + c is never
 * fused (-ffp-contract=off: the engine's compiler does not fuse). The two other flags change no result: they say that
 * nobody reads errno or the floating-point exceptions, which the engine's compiler takes for granted too. Within that,
 * everything is done that is worth doing by hand: one contiguous block per context, rows padded to whole vectors,
 * specialised updates, constants taken out of the loop, nothing allocated in it.
 */

#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LANES 4 /* rows are padded with zeros to a multiple of this */
#define INLINE static inline __attribute__((always_inline))

typedef double vector __attribute__((vector_size(LANES * sizeof(double)), may_alias));
typedef int64_t mask __attribute__((vector_size(LANES * sizeof(int64_t))));

enum { MAGIC = 0x444f5243, NO_ARM = -1, NEVER = -1, FIRST_CAPACITY = 1024, METRICS = 3 };
enum { DLINUCB = 0, DORAL = 1 };
enum { GEOMETRIC = 0, PARETO = 1 };
enum { RACING = 0, ACCEPTED = 1, REJECTED = 2 };
enum { WITHIN_DEADLINE = 0, BY_END = 1, WITHIN_CUTOFF = 2 };

static const double WHOLE = 1.0 - 1e-12; /* a share of an edge above this is the whole edge */

/* --- what is read ------------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t magic, policy, n_contexts, n_arms, n_features, horizon, refresh_rounds, refactor_every, n_ages,
        n_checkpoints, n_law_rows, seed, run, accept, min_answers;
    double budget, cutoff, deadline, penalty, delta, exploration, race_delta, tail_exponent, width_constant,
        race_budget_share, noise_sd;
} header;

typedef struct {
    header h;
    const double *features;     /* (A, k) */
    const double *means;        /* (J, A) */
    const double *shares;       /* (J,) */
    const double *costs;        /* (A,) */
    const int64_t *by_cost;     /* (A,) arms in ascending order of cost */
    const int64_t *law_kind;    /* (2, rows, A) */
    const double *law_a;        /* (2, rows, A) */
    const double *law_b;        /* (2, rows, A) */
    const double *law_never;    /* (2, rows, A) */
    const double *threshold;    /* (rows, A) */
    const double *ages;         /* (G,) */
    const int64_t *checkpoints; /* (C,) */
    const int64_t *context;     /* (T,) the tape */
    const double *noise;        /* (T,) */
    const double *wait;         /* (T,) uniforms for the delays */
} input;

/* --- what changes ------------------------------------------------------------------------------------------------ */

typedef struct {
    double time, answer_age; /* the age is infinite while unanswered */
    int32_t context, arm;
} open_decision;

typedef struct {
    double reward, delay;
    int32_t next_due, round, context, arm;
} entry;

typedef struct {
    double slope, cost;
    int64_t context;
} edge;

typedef struct {
    double cost, value;
    int64_t arm;
} vertex;

typedef struct {
    double estimate, lower, upper;
    int64_t standing, pulls, answers, n_delays;
} runner;

typedef struct {
    int64_t at_risk, returned;
} interval;

typedef struct {
    int64_t lower, upper; /* vertices of the hull, -1 to skip */
    double probability, price;
} share;

typedef struct {
    const input *in;
    int64_t n_contexts, n_arms, n_features, arm_lanes, feature_lanes, refactor_every, refresh_rounds, n_ages;
    /* one block per context, `stride` doubles apart, its parts at these offsets */
    int64_t stride, at_inverse, at_estimate, at_norm_squared, at_norm, at_window, at_tau, at_weight, at_target;
    double *blocks;
    double *features, *features_by_row; /* (A, feature_lanes), (k, arm_lanes) */
    double *pulls;                      /* (J,) */
    int64_t *updates;                   /* (J,) */
    double *direction, *step, *values;  /* scratch */
    double *factor, *theta;             /* scratch of `refactor` */
    double root_penalty, confidence_term, scaled_penalty; /* constants of the bonus */
    double basket_limit;
    /* the clock and the budget */
    int64_t round, horizon, first, settled, next, mask;
    double clock, budget_left, dearest, cutoff, deadline;
    open_decision *ring;
    /* race */
    bool racing;
    int64_t pass_left, race_rounds;
    double race_spend;
    runner *runners;
    double *delay_sums; /* (A, horizon + 1) prefix sums */
    double *baskets;
    double *barrier; /* (arm_lanes,) */
    bool *allowed;
    /* return curves */
    interval *curves; /* (A, G) */
    int64_t *cursor;  /* (G,) */
    /* LP_m */
    uint8_t *stale;      /* (J,) whether the hull must be rebuilt */
    int64_t *stale_list; /* (J + 1,) those contexts, n_stale of them */
    int64_t n_stale;
    int64_t hull_room, n_edges;
    int64_t *hull_length; /* (J + 1,) */
    vertex *hull;         /* (J + 1, hull_room) */
    edge *edges;
    /* book */
    int32_t *first_due, *last_due; /* (T + 1,) */
    entry *entries;                /* (T,) */
    double totals[METRICS];
    int64_t passed;
    double *curve; /* (C, METRICS) */
} run;

static void die(const char *message) {
    fprintf(stderr, "engine: %s\n", message);
    exit(1);
}

static void *room(size_t count, size_t size) {
    const size_t bytes = (count * size + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, bytes);
    if (memory == NULL) die("out of memory");
    memset(memory, 0, bytes); /* also touches every page before the clock starts */
    return memory;
}

static int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

INLINE double *block(const run *r, int64_t context) { return r->blocks + context * r->stride; }

INLINE void mark_stale(run *r, int64_t context) {
    r->stale_list[r->n_stale] = context;
    r->n_stale += !r->stale[context];
    r->stale[context] = 1;
}

INLINE vector load(const double *at) { return *(const vector *)at; }

INLINE void store(double *at, vector x) { *(vector *)at = x; }

/* --- ridge ------------------------------------------------------------------------------------------------------- */

/* Rebuild V^-1 (kept transposed), the estimates and the norms of one context from its sums. */
static void refactor(run *r, int64_t context) {
    const int64_t n_arms = r->n_arms, k = r->n_features, lanes = r->feature_lanes;
    double *const restrict factor = r->factor, *const restrict theta = r->theta;
    double *const c = block(r, context);
    double *const restrict inverse = c + r->at_inverse;
    const double *const weight = c + r->at_weight, *const target = c + r->at_target, *const f = r->features;
    for (int64_t i = 0; i < k; i++)
        for (int64_t l = 0; l <= i; l++) {
            double total = i == l ? r->in->h.penalty : 0.0;
            for (int64_t a = 0; a < n_arms; a++) total += weight[a] * f[a * lanes + i] * f[a * lanes + l];
            for (int64_t p = 0; p < l; p++) total -= factor[i * k + p] * factor[l * k + p];
            factor[i * k + l] = i == l ? sqrt(total) : total / factor[l * k + l];
        }
    for (int64_t column = 0; column < k; column++) { /* element (i, column) of V^-1 is inverse[column * lanes + i] */
        double *const x = inverse + column * lanes;
        for (int64_t i = 0; i < k; i++) {
            double total = i == column ? 1.0 : 0.0;
            for (int64_t p = 0; p < i; p++) total -= factor[i * k + p] * x[p];
            x[i] = total / factor[i * k + i];
        }
        for (int64_t i = k - 1; i >= 0; i--) {
            double total = x[i];
            for (int64_t p = i + 1; p < k; p++) total -= factor[p * k + i] * x[p];
            x[i] = total / factor[i * k + i];
        }
    }
    for (int64_t i = 0; i < k; i++) {
        double total = 0.0;
        for (int64_t a = 0; a < n_arms; a++)
            for (int64_t l = 0; l < k; l++) total += inverse[l * lanes + i] * f[a * lanes + l] * target[a];
        theta[i] = total;
    }
    for (int64_t a = 0; a < n_arms; a++) {
        double mean = 0.0, square = 0.0;
        for (int64_t i = 0; i < k; i++) {
            mean += f[a * lanes + i] * theta[i];
            for (int64_t l = 0; l < k; l++) square += f[a * lanes + i] * inverse[l * lanes + i] * f[a * lanes + l];
        }
        c[r->at_estimate + a] = mean;
        c[r->at_norm_squared + a] = square;
        c[r->at_norm + a] = sqrt(0.0 > square ? 0.0 : square);
    }
    r->updates[context] = 0;
}

/* V += f f^T where `counts`, G += target f: Sherman and Morrison, in one pass over the arms. */
INLINE void update(run *r, int64_t context, int64_t arm, bool counts, double reward) {
    const int64_t k = r->n_features, arm_lanes = r->arm_lanes, lanes = r->feature_lanes;
    double *const c = block(r, context);
    double *const restrict inverse = c + r->at_inverse, *const restrict estimate = c + r->at_estimate;
    double *const restrict norm_squared = c + r->at_norm_squared, *const restrict norm = c + r->at_norm;
    double *const restrict direction = r->direction, *const restrict step = r->step;
    const double *const restrict f = r->features + arm * lanes, *const restrict rows = r->features_by_row;
    if (counts) c[r->at_weight + arm] += 1.0;
    c[r->at_target + arm] += reward;
    for (int64_t i = 0; i < lanes; i += LANES) {
        vector total = {0.0};
        for (int64_t l = 0; l < k; l++) total += load(inverse + l * lanes + i) * f[l];
        store(direction + i, total);
    }
    double shrink = 1.0, gain = reward;
    if (counts) {
        double leverage = 0.0;
        for (int64_t i = 0; i < k; i++) leverage += direction[i] * f[i];
        shrink = 1.0 / (1.0 + leverage);
        gain = (reward - estimate[arm]) * shrink;
    }
    for (int64_t a = 0; a < arm_lanes; a += LANES) {
        vector shadow = {0.0};
        for (int64_t i = 0; i < k; i++) shadow += load(rows + i * arm_lanes + a) * direction[i];
        store(estimate + a, load(estimate + a) + shadow * gain);
        if (counts) {
            const vector left = load(norm_squared + a) - shadow * shadow * shrink;
            store(norm_squared + a, (vector)((mask)left & (left > 0.0))); /* not below zero */
            for (int64_t lane = 0; lane < LANES; lane++) norm[a + lane] = sqrt(norm_squared[a + lane]);
        }
    }
    if (!counts) return;
    for (int64_t i = 0; i < lanes; i += LANES) store(step + i, load(direction + i) * shrink);
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < lanes; i += LANES)
            store(inverse + l * lanes + i, load(inverse + l * lanes + i) - load(step + i) * direction[l]);
    if (++r->updates[context] >= r->refactor_every) refactor(r, context);
}

/* --- the index of an arm ----------------------------------------------------------------------------------------- */

INLINE double confidence(const run *r, int64_t context) {
    const double inside =
        r->confidence_term + r->n_features * log((r->scaled_penalty + r->pulls[context]) / r->scaled_penalty);
    return 2.0 * (r->root_penalty + sqrt(0.0 < inside ? inside : 0.0));
}

/* The first of the largest values, without branches: which arm leads is hard to guess. */
INLINE int64_t first_best(const double *restrict values, int64_t n_arms) {
    int64_t best = 0;
    double top = values[0];
    for (int64_t a = 1; a < n_arms; a++) {
        const bool better = values[a] > top;
        best = better ? a : best;
        top = better ? values[a] : top;
    }
    return best;
}

/* --- outcomes and the book --------------------------------------------------------------------------------------- */

INLINE double draw_delay(const input *in, int64_t context, int64_t arm, double reward, double u) {
    const int64_t rows = in->h.n_law_rows, n_arms = in->h.n_arms;
    const int64_t row = context < rows - 1 ? context : rows - 1;
    const int64_t outcome = reward > in->threshold[row * n_arms + arm];
    const int64_t law = (outcome * rows + row) * n_arms + arm;
    const double answered = 1.0 - in->law_never[law];
    if (u >= answered) return INFINITY;
    u /= answered;
    double delay;
    if (in->law_kind[law] == GEOMETRIC) {
        delay = ceil(log1p(-u) / in->law_b[law]);
    } else {
        delay = ceil(in->law_a[law] * exp(-log1p(-u) / in->law_b[law]));
    }
    return delay > 1.0 ? delay : 1.0;
}

INLINE void enter(run *r, int64_t decision, int64_t round, int64_t context, int64_t arm, double reward,
                  double delay) {
    entry *const e = r->entries + decision;
    *e = (entry){.reward = reward,
                 .delay = delay,
                 .next_due = NEVER,
                 .round = (int32_t)round,
                 .context = (int32_t)context,
                 .arm = (int32_t)arm};
    const double due = (double)round + delay;
    if (due >= (double)(r->horizon + 1)) return;
    const int64_t day = (int64_t)due;
    if (r->first_due[day] == NEVER) {
        r->first_due[day] = (int32_t)decision;
    } else {
        r->entries[r->last_due[day]].next_due = (int32_t)decision;
    }
    r->last_due[day] = (int32_t)decision;
}

INLINE void draw_and_enter(run *r, int64_t i, int64_t context, int64_t arm) {
    const input *const in = r->in;
    const double reward = in->means[context * r->n_arms + arm] + in->h.noise_sd * in->noise[i];
    enter(r, r->next - 1, i + 1, context, arm, reward, draw_delay(in, context, arm, reward, in->wait[i]));
}

INLINE void check_in(run *r, int64_t round) {
    if (r->passed >= r->in->h.n_checkpoints || r->in->checkpoints[r->passed] != round) return;
    memcpy(r->curve + r->passed * METRICS, r->totals, sizeof r->totals);
    r->passed++;
}

/* Room for one more decision: the ring doubles inside memory that was set aside before the loop. */
INLINE void ensure_room(run *r) {
    if (__builtin_expect(r->next - r->first <= r->mask, 1)) return;
    const int64_t old = r->mask, larger = 2 * old + 1;
    for (int64_t d = r->first; d < r->next; d++)
        if ((d & larger) != (d & old)) r->ring[d & larger] = r->ring[d & old];
    r->mask = larger;
}

INLINE void commit(run *r, int64_t context, int64_t arm) {
    r->ring[r->next & r->mask] = (open_decision){
        .time = r->clock, .answer_age = INFINITY, .context = (int32_t)context, .arm = (int32_t)arm};
    r->next++;
    r->budget_left -= r->in->costs[arm];
    r->pulls[context] += 1.0;
}

/* allowed[a] = affordable; how many are. */
INLINE int64_t set_allowed(run *r) {
    if (r->budget_left >= r->dearest && !r->racing) return r->n_arms;
    int64_t n = 0;
    for (int64_t a = 0; a < r->n_arms; a++) {
        r->allowed[a] = r->in->costs[a] <= r->budget_left;
        n += r->allowed[a];
    }
    return n;
}

/* --- D-LinUCB: thinned learner, window bias, greedy --------------------------------------------------------------- */

INLINE int64_t best_index(run *r, int64_t context, bool restricted) {
    const double *const c = block(r, context);
    const double *const restrict estimate = c + r->at_estimate, *const restrict norm = c + r->at_norm;
    const double *const restrict window = c + r->at_window;
    double *const restrict values = r->values;
    double bias = 0.0;
    for (int64_t a = 0; a < r->n_arms; a++) bias += window[a] * norm[a];
    const double bonus = r->in->h.exploration * (confidence(r, context) + bias);
    for (int64_t a = 0; a < r->arm_lanes; a += LANES)
        store(values + a, load(estimate + a) + bonus * load(norm + a) + load(r->barrier + a));
    if (restricted)
        for (int64_t a = 0; a < r->n_arms; a++)
            if (!r->allowed[a]) values[a] = -INFINITY;
    const int64_t best = first_best(values, r->n_arms);
    return values[best] > -INFINITY ? best : NO_ARM;
}

INLINE void observe_thinned(run *r, int64_t decision, double reward) {
    if (decision < r->first) return;
    open_decision *const d = r->ring + (decision & r->mask);
    if (d->answer_age < INFINITY) return;
    d->answer_age = r->clock - d->time;
    if (d->answer_age > r->cutoff) return;
    update(r, d->context, d->arm, false, reward);
}

static void play_dlinucb(run *restrict r) {
    const input *const in = r->in;
    for (int64_t i = 0; i < r->horizon; i++) {
        ensure_room(r);
        r->clock = (double)(i + 1);
        for (int32_t due = r->first_due[i + 1]; due != NEVER;) {
            const entry *const e = r->entries + due;
            observe_thinned(r, due, e->reward);
            r->totals[BY_END] += e->reward;
            if (e->delay <= r->deadline) r->totals[WITHIN_DEADLINE] += e->reward;
            if (e->delay <= r->cutoff) r->totals[WITHIN_CUTOFF] += e->reward;
            due = e->next_due;
        }
        while (r->settled < r->next && r->clock - r->ring[r->settled & r->mask].time > r->cutoff) {
            const open_decision *const d = r->ring + (r->settled & r->mask);
            block(r, d->context)[r->at_window + d->arm] -= 1.0;
            r->settled++;
        }
        r->first = r->settled;
        r->round++;
        const int64_t context = in->context[i], n_affordable = set_allowed(r);
        const int64_t arm = n_affordable > 0 ? best_index(r, context, n_affordable < r->n_arms) : NO_ARM;
        if (arm != NO_ARM) {
            commit(r, context, arm);
            block(r, context)[r->at_window + arm] += 1.0;
            update(r, context, arm, true, 0.0);
            draw_and_enter(r, i, context, arm);
        }
        check_in(r, i + 1);
    }
}

/* --- DORAL, stage 1: the race ------------------------------------------------------------------------------------ */

static double median_of_means(run *r, int64_t arm) {
    const int64_t n = r->runners[arm].n_delays;
    if (n == 0) return INFINITY;
    const double *const sums = r->delay_sums + arm * (r->horizon + 1);
    double *const baskets = r->baskets;
    const double half = (double)n / 2.0, wanted = floor(r->basket_limit < half ? r->basket_limit : half);
    const int64_t h = wanted > 1.0 ? (int64_t)wanted : 1, size = n / h;
    double before = 0.0;
    for (int64_t b = 0; b < h; b++) {
        const double upto = sums[(b + 1) * size], mean = (upto - before) / (double)size;
        before = upto;
        int64_t i = b;
        for (; i > 0 && baskets[i - 1] > mean; i--) baskets[i] = baskets[i - 1];
        baskets[i] = mean;
    }
    return h % 2 == 1 ? baskets[h / 2] : 0.5 * (baskets[h / 2 - 1] + baskets[h / 2]);
}

static void set_bounds(run *r, int64_t arm) {
    runner *const a = r->runners + arm;
    const header *const h = &r->in->h;
    a->estimate = median_of_means(r, arm);
    a->lower = -INFINITY;
    a->upper = INFINITY;
    if (a->answers < (h->min_answers > 1 ? h->min_answers : 1) || a->estimate == INFINITY) return;
    const double n = (double)a->answers, exponent = h->tail_exponent < 0.5 ? h->tail_exponent : 0.5;
    const double width = sqrt(h->width_constant / n) + 2.0 * a->estimate * pow(n, -exponent);
    a->lower = a->estimate - width;
    a->upper = a->estimate + width;
}

static int64_t count_standing(const run *r, int64_t standing) {
    int64_t n = 0;
    for (int64_t a = 0; a < r->n_arms; a++) n += r->runners[a].standing == standing;
    return n;
}

static void judge(run *r) {
    runner *const arms = r->runners;
    const int64_t n_arms = r->n_arms, accept = r->in->h.accept;
    int64_t racing = count_standing(r, RACING), accepted = count_standing(r, ACCEPTED);
    for (int64_t a = 0; a < n_arms; a++)
        if (arms[a].standing == RACING) set_bounds(r, a);
    for (int64_t a = 0; a < n_arms; a++) {
        if (arms[a].standing != RACING || accepted >= accept) continue;
        int64_t surely_slower = 0, surely_faster = 0;
        for (int64_t other = 0; other < n_arms; other++)
            if (other != a && arms[other].standing == RACING) {
                surely_slower += arms[a].upper < arms[other].lower;
                surely_faster += arms[a].lower > arms[other].upper;
            }
        const int64_t missing = accept - accepted;
        if (surely_slower >= racing - missing) {
            arms[a].standing = ACCEPTED;
            accepted++;
            racing--;
        } else if (surely_faster >= missing) {
            arms[a].standing = REJECTED;
            racing--;
        }
    }
}

static void fill_with_smallest(run *r) {
    runner *const arms = r->runners;
    for (int64_t a = 0; a < r->n_arms; a++)
        if (arms[a].standing == RACING) set_bounds(r, a);
    for (int64_t accepted = count_standing(r, ACCEPTED); accepted < r->in->h.accept; accepted++) {
        int64_t best = NO_ARM;
        for (int64_t a = 0; a < r->n_arms; a++)
            if (arms[a].standing == RACING && (best < 0 || arms[a].estimate < arms[best].estimate)) best = a;
        if (best < 0) return;
        arms[best].standing = ACCEPTED;
    }
}

static double return_probability(const run *r, int64_t arm, double age) {
    const interval *const restrict curve = r->curves + arm * r->n_ages;
    double survival = 1.0, start = 0.0;
    for (int64_t g = 0; g < r->n_ages && start < age; g++) {
        const double end = r->in->ages[g];
        const double ratio = curve[g].at_risk > 0 ? 1.0 - (double)curve[g].returned / (double)curve[g].at_risk : 0.0;
        survival *= end <= age ? ratio : 1.0 + (ratio - 1.0) * (age - start) / (end - start);
        start = end;
    }
    return 1.0 - survival;
}

static void read_curves(run *r) {
    for (int64_t a = 0; a < r->n_arms; a++) {
        const double tau = return_probability(r, a, r->deadline);
        for (int64_t j = 0; j < r->n_contexts; j++) block(r, j)[r->at_tau + a] = tau;
    }
    for (int64_t j = 0; j < r->n_contexts; j++) mark_stale(r, j);
}

static void end_race(run *r) {
    double cutoff = 0.0;
    for (int64_t a = 0; a < r->n_arms; a++) {
        runner *const arm = r->runners + a;
        if (arm->standing == RACING) arm->standing = REJECTED;
        if (arm->standing == ACCEPTED) {
            set_bounds(r, a);
            if (arm->upper < INFINITY && arm->upper > cutoff) cutoff = arm->upper;
        }
        r->barrier[a] = arm->standing == ACCEPTED ? 0.0 : -INFINITY;
    }
    if (cutoff <= 0.0) cutoff = r->in->ages[r->n_ages - 1];
    r->cutoff = cutoff > 1.0 ? cutoff : 1.0;
    r->racing = false;
    read_curves(r);
}

static void judge_race(run *r) {
    if (r->pass_left <= 0) {
        judge(r);
        r->pass_left += count_standing(r, RACING);
    }
    double dearest = 0.0;
    for (int64_t a = 0; a < r->n_arms; a++)
        if (r->runners[a].standing == RACING && r->in->costs[a] > dearest) dearest = r->in->costs[a];
    const header *const h = &r->in->h;
    bool over = count_standing(r, ACCEPTED) >= h->accept;
    if (!over && r->race_spend + dearest > h->race_budget_share * h->budget) {
        fill_with_smallest(r);
        over = count_standing(r, ACCEPTED) >= h->accept;
    }
    if (over) end_race(r);
}

INLINE int64_t race_step(run *r) {
    int64_t best = NO_ARM;
    for (int64_t a = 0; a < r->n_arms; a++)
        if (r->runners[a].standing == RACING && r->allowed[a] &&
            (best < 0 || r->runners[a].pulls < r->runners[best].pulls))
            best = a;
    if (best != NO_ARM) r->pass_left--;
    return best;
}

/* --- DORAL, stage 2: LP_m ---------------------------------------------------------------------------------------- */

INLINE void set_values(run *r, int64_t context, bool restricted) {
    const double *const c = block(r, context);
    const double *const restrict estimate = c + r->at_estimate, *const restrict norm = c + r->at_norm;
    const double *const restrict tau = c + r->at_tau;
    double *const restrict values = r->values;
    const double bonus = r->in->h.exploration * confidence(r, context);
    for (int64_t a = 0; a < r->arm_lanes; a += LANES)
        store(values + a,
              load(tau + a) * (load(estimate + a) + bonus * load(norm + a)) + load(r->barrier + a));
    if (restricted)
        for (int64_t a = 0; a < r->n_arms; a++)
            if (!r->allowed[a]) values[a] = -INFINITY;
}

INLINE void set_hull(run *r, int64_t row) {
    const input *const in = r->in;
    const double *const restrict values = r->values;
    vertex *const restrict hull = r->hull + row * r->hull_room;
    if (r->hull_room == 1) { /* one cost for all: the hull is the best arm */
        const int64_t best = first_best(values, r->n_arms);
        *hull = (vertex){.cost = in->costs[best], .value = values[best], .arm = best};
        r->hull_length[row] = values[best] > 0.0;
        return;
    }
    int64_t n = 0;
    double top = 0.0;
    for (int64_t position = 0; position < r->n_arms; position++) {
        const int64_t arm = in->by_cost[position];
        const double value = values[arm];
        if (!(value > top)) continue;
        const double cost = in->costs[arm];
        for (; n > 0; n--) { /* drop vertices that fall below the new line */
            const double before_value = n > 1 ? hull[n - 2].value : 0.0, before_cost = n > 1 ? hull[n - 2].cost : 0.0;
            const double rise = hull[n - 1].value - before_value, along = hull[n - 1].cost - before_cost;
            if (rise * (cost - hull[n - 1].cost) > (value - hull[n - 1].value) * along) break;
        }
        hull[n++] = (vertex){.cost = cost, .value = value, .arm = arm};
        top = value;
    }
    r->hull_length[row] = n;
}

INLINE void place(run *r, int64_t context) {
    edge *const restrict edges = r->edges;
    const vertex *const restrict hull = r->hull + context * r->hull_room;
    int64_t kept = 0;
    for (int64_t i = 0; i < r->n_edges; i++)
        if (edges[i].context != context) {
            if (kept != i) edges[kept] = edges[i];
            kept++;
        }
    double before_cost = 0.0, before_value = 0.0;
    for (int64_t v = 0; v < r->hull_length[context]; v++) {
        const double cost = hull[v].cost - before_cost, slope = (hull[v].value - before_value) / cost;
        before_cost = hull[v].cost;
        before_value = hull[v].value;
        int64_t i = kept++;
        for (; i > 0 && (edges[i - 1].slope < slope || (edges[i - 1].slope == slope && edges[i - 1].context > context));
             i--)
            edges[i] = edges[i - 1];
        edges[i] = (edge){.slope = slope, .cost = cost, .context = context};
    }
    r->n_edges = kept;
}

INLINE share fill(const run *r, double rate, int64_t context, int64_t row) {
    const edge *const restrict edges = r->edges;
    const double *const restrict shares = r->in->shares;
    const vertex *const restrict hull = r->hull + row * r->hull_room;
    const int64_t n_edges = r->n_edges, length = r->hull_length[row];
    double left = rate, own_slope = 0.0, own_cost = 0.0;
    int64_t level = 0, i = 0;
    if (length > 0) {
        own_cost = hull[0].cost;
        own_slope = hull[0].value / own_cost;
    }
    for (;;) {
        while (i < n_edges && edges[i].context == context) i++;
        const double other = i < n_edges ? edges[i].slope : -1.0;
        if (other > own_slope || (other == own_slope && level < length && edges[i].context < context)) {
            const double needed = shares[edges[i].context] * edges[i].cost;
            if (needed >= left) return (share){level - 1, level - 1, 1.0, other};
            left -= needed;
            i++;
        } else if (level < length) {
            const double needed = shares[context] * own_cost;
            if (needed >= left) {
                const double part = left / needed;
                return (share){level - 1, level, part > WHOLE ? 1.0 : part, own_slope};
            }
            left -= needed;
            level++;
            own_slope = 0.0;
            if (level < length) {
                own_cost = hull[level].cost - hull[level - 1].cost;
                own_slope = (hull[level].value - hull[level - 1].value) / own_cost;
            }
        } else {
            return (share){level - 1, level - 1, 1.0, 0.0};
        }
    }
}

/* Philox4x64-10 with the counter (round, 3, 0, 0) under the key (seed, run): the policy's own coin. */
static double coin(uint64_t seed, uint64_t run_number, uint64_t round) {
    uint64_t c0 = round, c1 = 3, c2 = 0, c3 = 0, k0 = seed, k1 = run_number;
    for (int i = 0; i < 10; i++) {
        const unsigned __int128 p0 = (unsigned __int128)UINT64_C(0xD2E7470EE14C6C93) * c0;
        const unsigned __int128 p1 = (unsigned __int128)UINT64_C(0xCA5A826395121157) * c2;
        c0 = (uint64_t)(p1 >> 64) ^ c1 ^ k0;
        c1 = (uint64_t)p1;
        c2 = (uint64_t)(p0 >> 64) ^ c3 ^ k1;
        c3 = (uint64_t)p0;
        k0 += UINT64_C(0x9E3779B97F4A7C15);
        k1 += UINT64_C(0xBB67AE8584CAA73B);
    }
    return (double)(c0 >> 11) * 0x1p-53;
}

INLINE int64_t allocate(run *r, int64_t context, bool restricted) {
    while (r->n_stale > 0) {
        const int64_t j = r->stale_list[--r->n_stale];
        set_values(r, j, false);
        set_hull(r, j);
        place(r, j);
        r->stale[j] = 0;
    }
    int64_t row = context;
    if (restricted) {
        row = r->n_contexts;
        set_values(r, context, true);
        set_hull(r, row);
    }
    const share s = fill(r, r->budget_left / (double)(r->horizon - r->round + 1), context, row);
    const bool upper =
        s.probability >= 1.0 ||
        (s.probability > 0.0 &&
         coin((uint64_t)r->in->h.seed, (uint64_t)r->in->h.run, (uint64_t)r->round) < s.probability);
    const int64_t v = upper ? s.upper : s.lower;
    return v >= 0 ? r->hull[row * r->hull_room + v].arm : NO_ARM;
}

INLINE void observe_returned(run *r, int64_t decision, double reward) {
    if (decision < r->first) return;
    open_decision *const d = r->ring + (decision & r->mask);
    if (d->answer_age < INFINITY) return;
    const double age = r->clock - d->time;
    d->answer_age = age;
    if (r->racing) {
        runner *const arm = r->runners + d->arm;
        double *const sums = r->delay_sums + d->arm * (r->horizon + 1);
        sums[arm->n_delays + 1] = sums[arm->n_delays] + age;
        arm->n_delays++;
        arm->answers++;
    }
    if (age > r->cutoff) return;
    update(r, d->context, d->arm, true, reward);
    mark_stale(r, d->context);
}

/* Every decision that has passed an age since last time is counted in that interval of its arm's return curve. */
INLINE void watch(run *r) {
    const double *const restrict ages = r->in->ages;
    const open_decision *const restrict ring = r->ring;
    for (int64_t g = 0; g < r->n_ages; g++) {
        const double end = ages[g], start = g > 0 ? ages[g - 1] : -INFINITY;
        int64_t decision = r->cursor[g];
        for (; decision < r->next && r->clock - ring[decision & r->mask].time > end; decision++) {
            const open_decision *const d = ring + (decision & r->mask);
            interval *const at = r->curves + d->arm * r->n_ages + g; /* no branches: they would be guessed wrong */
            const int64_t entered = d->answer_age > start;
            at->at_risk += entered;
            at->returned += entered & (d->answer_age <= end);
        }
        r->cursor[g] = decision;
    }
    const int64_t watched = r->cursor[r->n_ages - 1];
    r->first = r->settled < watched ? r->settled : watched;
}

static void play_doral(run *restrict r) {
    const input *const in = r->in;
    for (int64_t i = 0; i < r->horizon; i++) {
        ensure_room(r);
        r->clock = (double)(i + 1);
        for (int32_t due = r->first_due[i + 1]; due != NEVER;) {
            const entry *const e = r->entries + due;
            observe_returned(r, due, e->reward);
            r->totals[BY_END] += e->reward;
            if (e->delay <= r->deadline) r->totals[WITHIN_DEADLINE] += e->reward;
            if (e->delay <= r->cutoff) r->totals[WITHIN_CUTOFF] += e->reward;
            due = e->next_due;
        }
        while (r->settled < r->next && r->clock - r->ring[r->settled & r->mask].time > r->cutoff) r->settled++;
        if (r->round % r->refresh_rounds == 0) {
            watch(r);
            if (!r->racing) read_curves(r);
        }
        r->round++;
        if (r->racing) judge_race(r);
        const int64_t context = in->context[i], n_affordable = set_allowed(r);
        int64_t arm = NO_ARM;
        if (n_affordable > 0) arm = r->racing ? race_step(r) : allocate(r, context, n_affordable < r->n_arms);
        if (arm != NO_ARM) {
            commit(r, context, arm);
            if (r->racing) {
                r->race_rounds++;
                r->race_spend += in->costs[arm];
                r->runners[arm].pulls++;
            }
            mark_stale(r, context);
            draw_and_enter(r, i, context, arm);
        }
        check_in(r, i + 1);
    }
}

/* --- set up, time, report ---------------------------------------------------------------------------------------- */

static void read_input(const char *path, input *in) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) die("cannot open the input");
    if (fread(&in->h, sizeof in->h, 1, file) != 1 || in->h.magic != MAGIC) die("not an input of this program");
    const size_t n_contexts = (size_t)in->h.n_contexts, n_arms = (size_t)in->h.n_arms;
    const size_t n_laws = 2 * (size_t)in->h.n_law_rows * n_arms, horizon = (size_t)in->h.horizon;
    const struct {
        const void *where;
        size_t count;
    } arrays[] = {
        {&in->features, n_arms * (size_t)in->h.n_features},
        {&in->means, n_contexts * n_arms},
        {&in->shares, n_contexts},
        {&in->costs, n_arms},
        {&in->by_cost, n_arms},
        {&in->law_kind, n_laws},
        {&in->law_a, n_laws},
        {&in->law_b, n_laws},
        {&in->law_never, n_laws},
        {&in->threshold, n_laws / 2},
        {&in->ages, (size_t)in->h.n_ages},
        {&in->checkpoints, (size_t)in->h.n_checkpoints},
        {&in->context, horizon},
        {&in->noise, horizon},
        {&in->wait, horizon},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        void *const memory = room(arrays[i].count, 8);
        if (fread(memory, 8, arrays[i].count, file) != arrays[i].count) die("the input is cut short");
        memcpy((void *)(uintptr_t)arrays[i].where, &memory, sizeof memory);
    }
    fclose(file);
    for (size_t i = 0; i < n_laws; i++)
        if (in->law_kind[i] != GEOMETRIC && in->law_kind[i] != PARETO) die("only Geometric and Pareto delays");
}

static run new_run(const input *in) {
    const header *const h = &in->h;
    const size_t n_contexts = (size_t)h->n_contexts, n_arms = (size_t)h->n_arms, k = (size_t)h->n_features;
    const size_t horizon = (size_t)h->horizon, n_ages = (size_t)h->n_ages;
    run r = {.in = in,
             .n_contexts = h->n_contexts,
             .n_arms = h->n_arms,
             .n_features = h->n_features,
             .arm_lanes = padded(h->n_arms),
             .feature_lanes = padded(h->n_features),
             .refactor_every = h->refactor_every,
             .refresh_rounds = h->refresh_rounds,
             .n_ages = h->n_ages,
             .horizon = h->horizon,
             .deadline = h->deadline};
    const size_t arm_lanes = (size_t)r.arm_lanes, feature_lanes = (size_t)r.feature_lanes;
    int64_t *const offsets[] = {&r.at_estimate, &r.at_norm_squared, &r.at_norm,  &r.at_window,
                                &r.at_tau,      &r.at_weight,       &r.at_target};
    r.stride = h->n_features * r.feature_lanes; /* the inverse comes first */
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        *offsets[i] = r.stride;
        r.stride += r.arm_lanes;
    }
    r.blocks = room(n_contexts * (size_t)r.stride, sizeof(double));
    r.features = room(n_arms * feature_lanes, sizeof(double));
    r.features_by_row = room(k * arm_lanes, sizeof(double));
    for (size_t a = 0; a < n_arms; a++)
        for (size_t i = 0; i < k; i++) {
            r.features[a * feature_lanes + i] = in->features[a * k + i];
            r.features_by_row[i * arm_lanes + a] = in->features[a * k + i];
        }
    r.pulls = room(n_contexts, sizeof(double));
    r.updates = room(n_contexts, sizeof(int64_t));
    r.direction = room(feature_lanes, sizeof(double));
    r.step = room(feature_lanes, sizeof(double));
    r.values = room(arm_lanes, sizeof(double));
    r.factor = room(k * k, sizeof(double));
    r.theta = room(k, sizeof(double));
    r.root_penalty = sqrt(h->penalty);
    r.confidence_term = 2.0 * log(1.0 / h->delta);
    r.scaled_penalty = (double)h->n_features * h->penalty;
    r.basket_limit = 8.0 * log(exp(0.125) / h->race_delta);
    size_t most_open = FIRST_CAPACITY;
    while (most_open < horizon) most_open *= 2;
    r.ring = room(most_open, sizeof(open_decision));
    r.runners = room(n_arms, sizeof(runner));
    r.delay_sums = room(h->policy == DORAL ? n_arms * (horizon + 1) : 1, sizeof(double));
    r.baskets = room((size_t)r.basket_limit + 2, sizeof(double));
    r.barrier = room(arm_lanes, sizeof(double));
    r.allowed = room(n_arms, sizeof(bool));
    r.curves = room(n_arms * n_ages, sizeof(interval));
    r.cursor = room(n_ages, sizeof(int64_t));
    r.stale = room(n_contexts, 1);
    r.stale_list = room(n_contexts + 1, sizeof(int64_t));
    r.hull_room = 1;
    for (size_t i = 1; i < n_arms; i++) r.hull_room += in->costs[in->by_cost[i]] > in->costs[in->by_cost[i - 1]];
    r.dearest = in->costs[in->by_cost[n_arms - 1]];
    r.hull_length = room(n_contexts + 1, sizeof(int64_t));
    r.hull = room((n_contexts + 1) * (size_t)r.hull_room, sizeof(vertex));
    r.edges = room(n_contexts * (size_t)r.hull_room + 1, sizeof(edge));
    r.first_due = room(horizon + 1, sizeof(int32_t));
    r.last_due = room(horizon + 1, sizeof(int32_t));
    r.entries = room(horizon, sizeof(entry));
    r.curve = room((size_t)h->n_checkpoints * METRICS, sizeof(double));
    return r;
}

/* Back to the first round, in the same memory. */
static void reset(run *r) {
    const header *const h = &r->in->h;
    const bool races = h->policy == DORAL;
    memset(r->blocks, 0, (size_t)(r->n_contexts * r->stride) * sizeof(double));
    memset(r->pulls, 0, (size_t)r->n_contexts * sizeof(double));
    memset(r->curves, 0, (size_t)(r->n_arms * r->n_ages) * sizeof(interval));
    memset(r->cursor, 0, (size_t)r->n_ages * sizeof(int64_t));
    memset(r->stale, 0, (size_t)r->n_contexts);
    memset(r->hull_length, 0, (size_t)(r->n_contexts + 1) * sizeof(int64_t));
    memset(r->first_due, 0xff, (size_t)(r->horizon + 1) * sizeof(int32_t)); /* NEVER */
    memset(r->last_due, 0xff, (size_t)(r->horizon + 1) * sizeof(int32_t));
    memset(r->totals, 0, sizeof r->totals);
    r->round = r->first = r->settled = r->next = r->n_edges = r->race_rounds = r->passed = 0;
    r->mask = FIRST_CAPACITY - 1;
    r->n_stale = 0;
    r->budget_left = h->budget;
    r->race_spend = 0.0;
    r->racing = races;
    r->pass_left = r->n_arms;
    r->cutoff = races ? INFINITY : h->cutoff;
    for (int64_t a = 0; a < r->n_arms; a++) {
        r->barrier[a] = races ? -INFINITY : 0.0;
        r->runners[a] = (runner){
            .estimate = INFINITY, .lower = -INFINITY, .upper = INFINITY, .standing = races ? RACING : ACCEPTED};
    }
    for (int64_t j = 0; j < r->n_contexts; j++) {
        refactor(r, j);
        mark_stale(r, j);
    }
}

/* One number for all decisions; the order does not enter, as rounds are distinct. */
static uint64_t checksum(const run *r) {
    uint64_t sum = 0;
    for (int64_t d = 0; d < r->next; d++) {
        uint64_t x = (uint64_t)r->entries[d].round * (uint64_t)r->n_arms + (uint64_t)r->entries[d].arm;
        x *= UINT64_C(0x9E3779B97F4A7C15);
        x ^= x >> 32;
        sum += x * UINT64_C(0xD2E7470EE14C6C93);
    }
    return sum;
}

/* Of this thread: a busy machine does not enter. */
static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3) die("usage: engine INPUT REPEATS");
    input in = {0};
    read_input(argv[1], &in);
    if (in.h.policy != DLINUCB && in.h.policy != DORAL) die("no such policy");
    const int repeats = atoi(argv[2]);
    run r = new_run(&in);
    double best = INFINITY;
    for (int repeat = 0; repeat < repeats; repeat++) {
        reset(&r);
        const double start = seconds_now();
        if (in.h.policy == DORAL) {
            play_doral(&r);
        } else {
            play_dlinucb(&r);
        }
        const double took = seconds_now() - start;
        if (took < best) best = took;
    }
    printf("{\"seconds\": %.9f, \"decisions\": %lld, \"spend\": %.17g, \"reward\": %.17g, \"race_rounds\": %lld, "
           "\"cutoff\": %.17g, \"checksum\": %llu}\n",
           best, (long long)r.next, in.h.budget - r.budget_left, r.totals[WITHIN_DEADLINE], (long long)r.race_rounds,
           r.cutoff, (unsigned long long)checksum(&r));
    return 0;
}
