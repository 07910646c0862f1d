"""The loops over non-zero counts that numba compiles.

A table of log h is padded by wrapping (see `core.torus.pad`), so that the shift of a section is one number: the
position in the padded plane at which the section starts.
"""

# mypy: disable-error-code="no-untyped-def"


def match(ends, columns, counts, n_features, log_h, section_start, run_start, out):
    """Compute sum_s counts_s . log h[k + d_s] for CSR bags; `out` is (bags, runs, cells of a run)."""
    length = out.shape[2]
    for t in range(out.shape[0]):
        out[t] = 0
        rest = ends[t] + (ends[t + 1] - ends[t]) // 4 * 4
        for p in range(ends[t], rest, 4):  # four counts share one pass over the cells
            at_a, a = divmod(columns[p], n_features)
            at_b, b = divmod(columns[p + 1], n_features)
            at_c, c = divmod(columns[p + 2], n_features)
            at_d, d = divmod(columns[p + 3], n_features)
            n_a, n_b, n_c, n_d = counts[p], counts[p + 1], counts[p + 2], counts[p + 3]
            for r in range(run_start.shape[0]):
                of_a = log_h[a, section_start[at_a] + run_start[r] :]
                of_b = log_h[b, section_start[at_b] + run_start[r] :]
                of_c = log_h[c, section_start[at_c] + run_start[r] :]
                of_d = log_h[d, section_start[at_d] + run_start[r] :]
                total = out[t, r]
                for k in range(length):
                    total[k] += (n_a * of_a[k] + n_b * of_b[k]) + (n_c * of_c[k] + n_d * of_d[k])
        for p in range(rest, ends[t + 1]):
            section, z = divmod(columns[p], n_features)
            count = counts[p]
            for r in range(run_start.shape[0]):
                plane = log_h[z, section_start[section] + run_start[r] :]
                total = out[t, r]
                for k in range(length):
                    total[k] += count * plane[k]


def paint(ends, bags, counts, n_features, first, last, q, section_start, run_start, out):
    """Add sum_t sum_s q_t[j - d_s] counts_ts of some features to padded planes; bags are CSC."""
    length = q.shape[2]
    for z in range(first, last):
        for section in range(section_start.shape[0]):
            column = section * n_features + z
            rest = ends[column] + (ends[column + 1] - ends[column]) // 4 * 4
            for r in range(run_start.shape[0]):
                start = section_start[section] + run_start[r]
                plane = out[z, start : start + length]
                for p in range(ends[column], rest, 4):  # four bags share one pass over the cells
                    a, b, c, d = q[bags[p], r], q[bags[p + 1], r], q[bags[p + 2], r], q[bags[p + 3], r]
                    n_a, n_b, n_c, n_d = counts[p], counts[p + 1], counts[p + 2], counts[p + 3]
                    for k in range(length):
                        plane[k] += (n_a * a[k] + n_b * b[k]) + (n_c * c[k] + n_d * d[k])
                for p in range(rest, ends[column + 1]):
                    count, source = counts[p], q[bags[p], r]
                    for k in range(length):
                        plane[k] += count * source[k]


def paint_sparse(ends, bags, counts, n_features, first, last, q_ends, q_cells, q, section_start, cell_start, out):
    """Do what `paint` does for a CSR q."""
    for z in range(first, last):
        for section in range(section_start.shape[0]):
            column = section * n_features + z
            plane = out[z, section_start[section] :]
            for p in range(ends[column], ends[column + 1]):
                count = counts[p]
                for e in range(q_ends[bags[p]], q_ends[bags[p] + 1]):
                    plane[cell_start[q_cells[e]]] += count * q[e]
