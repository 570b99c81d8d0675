"""The inside-outside pass over a plan, compiled: LANES sentences of one length side by side in every row.

The innermost loops run over contiguous lanes, so that they become vector instructions whatever the grammar.
"""

import numba
import numpy as np

LANES = 32


@numba.njit(cache=True, nogil=True)
def inside(words, leaves, jobs, pairs, first, cells, cell, rules, rule, probability, scaled, chart, products):
    """chart [rows, LANES]: scaled P(words of the span | symbol). words [T, LANES] int64."""
    chart[:] = 0.0
    for leaf in range(len(leaves)):
        row, group, position = leaves[leaf]
        for symbol in range(first[group], first[group + 1]):
            for lane in range(LANES):
                chart[row, lane] = scaled[words[position, lane], symbol]
            row += 1
    for job in range(len(jobs)):
        row, block, begin, end = jobs[job]
        start, count = cells[block], cells[block + 1] - cells[block]
        for c in range(count):
            left, right = pairs[begin, 0] + cell[start + c, 0], pairs[begin, 1] + cell[start + c, 1]
            for lane in range(LANES):
                products[c, lane] = chart[left, lane] * chart[right, lane]
            for pair in range(begin + 1, end):
                left, right = pairs[pair, 0] + cell[start + c, 0], pairs[pair, 1] + cell[start + c, 1]
                for lane in range(LANES):
                    products[c, lane] += chart[left, lane] * chart[right, lane]
        for r in range(rules[block], rules[block + 1]):
            parent, c, p = row + rule[r, 0], rule[r, 1], probability[r]
            for lane in range(LANES):
                chart[parent, lane] += p * products[c, lane]


@numba.njit(cache=True, nogil=True)
def outside(jobs, pairs, cells, cell, rules, rule, probability, chart, outer, products):
    """outer [rows, LANES]: scaled P(root, words beside the span | symbol), the roots' rows being set by the caller."""
    for job in range(len(jobs) - 1, -1, -1):
        row, block, begin, end = jobs[job]
        start, count = cells[block], cells[block + 1] - cells[block]
        products[:count] = 0.0
        for r in range(rules[block], rules[block + 1]):
            parent, c, p = row + rule[r, 0], rule[r, 1], probability[r]
            for lane in range(LANES):
                products[c, lane] += p * outer[parent, lane]
        for pair in range(begin, end):
            for c in range(count):
                left, right = pairs[pair, 0] + cell[start + c, 0], pairs[pair, 1] + cell[start + c, 1]
                for lane in range(LANES):
                    outer[left, lane] += products[c, lane] * chart[right, lane]
                for lane in range(LANES):
                    outer[right, lane] += products[c, lane] * chart[left, lane]


@numba.njit(cache=True, nogil=True)
def read(leaf_rows, entries, symbols, probabilities, outer, wide, found):
    """found [LANES, T, V]: P(word | all other words), 0 everywhere for impossible sentences. wide [V, LANES]: space."""
    total = np.empty(LANES)
    for position in range(len(leaf_rows)):
        total[:] = 0.0
        for word in range(len(entries) - 1):
            for lane in range(LANES):
                wide[word, lane] = 0.0
            for entry in range(entries[word], entries[word + 1]):
                row = leaf_rows[position, symbols[entry]]
                if row >= 0:
                    p = probabilities[entry]
                    for lane in range(LANES):
                        wide[word, lane] += p * outer[row, lane]
            for lane in range(LANES):
                total[lane] += wide[word, lane]
        for lane in range(LANES):
            total[lane] = 1.0 / total[lane] if total[lane] > 0.0 else 0.0
        for lane in range(len(found)):
            for word in range(len(entries) - 1):
                found[lane, position, word] = wide[word, lane] * total[lane]
