/* The inner loops of an EM iteration, for float and for double.

   A table has rows of cells. Rows start `stride` items apart, and may be read and written up to the next multiple of 16
   items behind their end (see `arrays.padded_rows`). Entries of sparse bags come with `where`, the position in a table
   at which the row of their feature starts, shifted to their section. Every cell is summed in the order of the entries,
   whatever the processor, so that results do not depend on how many cells are worked on at a time. */

#ifndef REAL

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

/* Entries ahead whose rows are fetched from memory: rows are read in no order that the processor could guess. */
#define AHEAD 8

/* TILE is the number of vectors of 16 cells that are summed at a time, in registers. */
#define REAL float
#define TILE 8
#define NAME(name) name##_float32
#include "loops.c"
#undef REAL
#undef TILE
#undef NAME
#define REAL double
#define TILE 4
#define NAME(name) name##_float64
#include "loops.c"

#else

typedef REAL NAME(vector) __attribute__((vector_size(16 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

static inline __attribute__((always_inline)) void NAME(add_rows)(
    int64_t first, int64_t last, int64_t n_entries, const int64_t *where, const REAL *counts, const REAL *table,
    REAL *out, int n_vectors, int is_added)
{
    NAME(vector) sums[TILE];
    for (int i = 0; i < n_vectors; i++)
        sums[i] = (NAME(vector)){0};
    for (int64_t p = first; p < last; p++) {
        const REAL *row = table + where[p], *next = table + where[p + AHEAD < n_entries ? p + AHEAD : p];
        const REAL count = counts[p];
        for (int i = 0; i < n_vectors; i++)
            __builtin_prefetch(next + 16 * i);
        for (int i = 0; i < n_vectors; i++)
            sums[i] += count * *(const NAME(vector) *)(row + 16 * i);
    }
    for (int i = 0; i < n_vectors; i++) {
        NAME(vector) *cells = (NAME(vector) *)(out + 16 * i);
        if (is_added)
            *cells += sums[i];
        else
            *cells = sums[i];
    }
}

/* out[t, k] = sum of counts * table[where + k] over the entries of bag t, for all cells k. */
CLONES void NAME(match)(
    const int64_t *ends, const int64_t *where, const REAL *counts, int64_t n_bags, const REAL *table,
    int64_t n_cells, REAL *out, int64_t out_stride)
{
    for (int64_t k = 0; k < n_cells;) {
        const int is_wide = k + 16 * TILE <= n_cells;
        for (int64_t t = 0; t < n_bags; t++) {
            REAL *cells = out + t * out_stride + k;
            if (is_wide)
                NAME(add_rows)(ends[t], ends[t + 1], ends[n_bags], where, counts, table + k, cells, TILE, 0);
            else
                NAME(add_rows)(ends[t], ends[t + 1], ends[n_bags], where, counts, table + k, cells, 1, 0);
        }
        k += is_wide ? 16 * TILE : 16;
    }
}

/* out[target[c] + k] += sum of counts * q[where + k] over the bags of column c, for columns listed in `columns`. */
CLONES void NAME(paint)(
    const int64_t *columns, int64_t n_columns, const int64_t *ends, int64_t n_entries, const int64_t *where,
    const REAL *counts, const REAL *q, int64_t n_cells, const int64_t *target, REAL *out)
{
    for (int64_t k = 0; k < n_cells;) {
        const int is_wide = k + 16 * TILE <= n_cells;
        for (int64_t c = 0; c < n_columns; c++) {
            const int64_t column = columns[c], first = ends[column], last = ends[column + 1];
            REAL *cells = out + target[column] + k;
            if (first == last)
                continue;
            if (is_wide)
                NAME(add_rows)(first, last, n_entries, where, counts, q + k, cells, TILE, 1);
            else
                NAME(add_rows)(first, last, n_entries, where, counts, q + k, cells, 1, 1);
        }
        k += is_wide ? 16 * TILE : 16;
    }
}

/* rows[i, j] += min(value, others[column, j]) for the entries of each sparse row i. */
CLONES void NAME(add_minima)(
    const int64_t *ends, const int32_t *columns, const REAL *values, int64_t n_rows, const REAL *others, int64_t n_others,
    REAL *rows)
{
    for (int64_t i = 0; i < n_rows; i++) {
        REAL *row = rows + i * n_others;
        for (int64_t p = ends[i]; p < ends[i + 1]; p++) {
            const REAL value = values[p], *other = others + columns[p] * n_others;
            for (int64_t j = 0; j < n_others; j++)
                row[j] += value < other[j] ? value : other[j];
        }
    }
}

/* The sum of the products of two rows, up to n; vectors are added in a fixed order. */
static inline __attribute__((always_inline)) REAL NAME(dot)(const REAL *row, const REAL *weights, int64_t n)
{
    NAME(vector) even = {0}, odd = {0};
    int64_t k = 0;
    REAL total = 0;
    for (; k + 32 <= n; k += 32) {
        even += *(const NAME(vector) *)(row + k) * *(const NAME(vector) *)(weights + k);
        odd += *(const NAME(vector) *)(row + k + 16) * *(const NAME(vector) *)(weights + k + 16);
    }
    even += odd;
    for (int i = 0; i < 16; i++)
        total += even[i];
    for (; k < n; k++)
        total += row[k] * weights[k];
    return total;
}

/* Update the weights of all cells of every bag, without the floor that pseudocounts give to each:
   weights = (weights + floor) * sum of ratios * table[where + k] * scale, with ratios = counts / p. */
CLONES void NAME(admix)(
    const int64_t *ends, const int64_t *where, const REAL *counts, int64_t n_bags, const REAL *table,
    const REAL *is_cell, const REAL *scale, const REAL *floor, int64_t n_cells, int64_t stride, int64_t n_steps,
    REAL *ratios, REAL *sums, REAL *out)
{
    for (int64_t t = 0; t < n_bags; t++) {
        REAL *weights = out + t * stride;
        for (int64_t step = 0; step < n_steps && ends[t] < ends[t + 1]; step++) {
            for (int64_t k = 0; k < n_cells; k++)
                weights[k] += is_cell[k] * floor[t];
            for (int64_t p = ends[t]; step && p < ends[t + 1]; p++)
                ratios[p] = counts[p] / NAME(dot)(table + where[p], weights, n_cells);
            for (int64_t k = 0; k < n_cells;) {
                const int is_wide = k + 16 * TILE <= n_cells;
                if (is_wide)
                    NAME(add_rows)(ends[t], ends[t + 1], ends[t + 1], where, ratios, table + k, sums + k, TILE, 0);
                else
                    NAME(add_rows)(ends[t], ends[t + 1], ends[t + 1], where, ratios, table + k, sums + k, 1, 0);
                k += is_wide ? 16 * TILE : 16;
            }
            for (int64_t k = 0; k < n_cells; k++)
                weights[k] *= is_cell[k] > 0 ? sums[k] * scale[t] : 0;
        }
    }
}

/* The same for the few cells of each bag that are listed, cells[q_ends[t]:q_ends[t + 1]]; the others keep the floor,
   which gives `rest` to p, and the listed ones have `total` together. The last ratios belong to the last weights. */
CLONES void NAME(admix_few)(
    const int64_t *ends, const int64_t *where, const REAL *counts, int64_t n_bags, const REAL *table,
    const int64_t *q_ends, const int64_t *cells, REAL *q, const REAL *rest, const REAL *total, const REAL *scale,
    const REAL *floor, int64_t n_steps, REAL *scratch, REAL *ratios)
{
    for (int64_t t = 0; t < n_bags; t++) {
        const int64_t first = ends[t], n = ends[t + 1] - first, n_cells = q_ends[t + 1] - q_ends[t];
        const int64_t width = (n_cells + 15) / 16 * 16;
        REAL *weights = scratch, *sums = weights + width, *few = sums + width;
        memset(scratch, 0, width * (n + 2) * sizeof(REAL));
        for (int64_t j = 0; j < n_cells; j++)
            weights[j] = q[q_ends[t] + j];
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n_cells; j++)
                few[i * width + j] = table[where[first + i] + cells[q_ends[t] + j]];
        for (int64_t step = 0; step <= n_steps; step++) {
            REAL sum = 0;
            for (int64_t j = 0; j < n_cells; j++)
                sum += weights[j];
            const REAL share = sum > 0 ? total[t] / sum : 0;
            for (int64_t j = 0; j < width; j++) {
                weights[j] *= share;
                sums[j] = 0;
            }
            for (int64_t i = 0; i < n; i++) {
                const REAL *row = few + i * width;
                const REAL ratio = counts[first + i] / (rest[first + i] + NAME(dot)(row, weights, width));
                ratios[first + i] = ratio;
                for (int64_t j = 0; j < width; j++)
                    sums[j] += ratio * row[j];
            }
            for (int64_t j = 0; step < n_steps && j < n_cells; j++)
                weights[j] = (weights[j] + floor[t]) * sums[j] * scale[t];
        }
        for (int64_t j = 0; j < n_cells; j++)
            q[q_ends[t] + j] = weights[j];
    }
}

#endif
