"""The inside-outside pass over a plan, compiled: LANES sentences of one length side by side in every row of a chart.

Sums stay in registers: each is over the splits of a span, the rules of a symbol, or the symbols beside one.
"""

import numba

from masklab.corpora.pcfg.lanes import LANES, add_product, load, store, zeros

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@compiled
def inside(words, leaves, jobs, pairs, tables, scaled, chart, products):
    """chart [rows, LANES]: scaled P(words of the span | symbol). words [T, LANES] int64."""
    first, rows, heights, by_parent, cell, parent_probability = tables[:6]
    for leaf in range(len(leaves)):
        row, group, position = leaves[leaf]
        chart[row : row + rows[group]] = 0.0
        for symbol in range(first[group], first[group + 1]):
            for lane in range(LANES):
                chart[row, lane] = scaled[words[position, lane], symbol]
            row += 1
    for job in range(len(jobs)):
        row, group, begin, end = jobs[job]
        height = heights[group]
        for i in range(height):
            for j in range(0, height, 4):
                a, b, c, d = zeros(), zeros(), zeros(), zeros()
                for pair in range(begin, end):
                    left, right = load(chart, pairs[pair, 0] + i), pairs[pair, 1] + j
                    a = add_product(a, left, load(chart, right))
                    b = add_product(b, left, load(chart, right + 1))
                    c = add_product(c, left, load(chart, right + 2))
                    d = add_product(d, left, load(chart, right + 3))
                at = i * height + j
                store(products, at, a)
                store(products, at + 1, b)
                store(products, at + 2, c)
                store(products, at + 3, d)
        chart[row : row + rows[group]] = 0.0
        for symbol in range(first[group], first[group + 1]):
            total = zeros()
            for rule in range(by_parent[symbol], by_parent[symbol + 1]):
                total = add_product(total, parent_probability[rule], load(products, cell[rule]))
            store(chart, row, total)
            row += 1


@compiled
def outside(jobs, pairs, tables, chart, outer, products):
    """outer [rows, LANES]: scaled P(root, words beside the span | symbol), the roots' rows being set by the caller."""
    heights, cells, by_cell, parent, cell_probability = tables[2], *tables[6:]
    for job in range(len(jobs) - 1, -1, -1):
        row, group, begin, end = jobs[job]
        height = heights[group]
        for c in range(height * height):
            total, at = zeros(), cells[group] + c
            for rule in range(by_cell[at], by_cell[at + 1]):
                total = add_product(total, cell_probability[rule], load(outer, row + parent[rule]))
            store(products, c, total)
        for pair in range(begin, end):
            left, right = pairs[pair]
            for i in range(0, height, 4):
                row, at = left + i, i * height
                a, b, c, d = load(outer, row), load(outer, row + 1), load(outer, row + 2), load(outer, row + 3)
                for j in range(height):
                    beside = load(chart, right + j)
                    a = add_product(a, load(products, at + j), beside)
                    b = add_product(b, load(products, at + height + j), beside)
                    c = add_product(c, load(products, at + 2 * height + j), beside)
                    d = add_product(d, load(products, at + 3 * height + j), beside)
                store(outer, row, a)
                store(outer, row + 1, b)
                store(outer, row + 2, c)
                store(outer, row + 3, d)
            for j in range(0, height, 4):
                row = right + j
                a, b, c, d = load(outer, row), load(outer, row + 1), load(outer, row + 2), load(outer, row + 3)
                for i in range(height):
                    beside, at = load(chart, left + i), i * height + j
                    a = add_product(a, load(products, at), beside)
                    b = add_product(b, load(products, at + 1), beside)
                    c = add_product(c, load(products, at + 2), beside)
                    d = add_product(d, load(products, at + 3), beside)
                store(outer, row, a)
                store(outer, row + 1, b)
                store(outer, row + 2, c)
                store(outer, row + 3, d)


@compiled
def read(leaf_rows, emissions, outer, rows, wide, out):
    """out [N, T, V]: of its `rows`, P(word | all other words); 0 everywhere where none is possible."""
    entries, symbols, probabilities = emissions
    words, last = len(entries) - 1, len(entries) - 1  # the last row of `wide` holds the sums
    for position in range(len(leaf_rows)):
        total = zeros()
        for word in range(words):
            here = zeros()
            for entry in range(entries[word], entries[word + 1]):
                row = leaf_rows[position, symbols[entry]]
                if row >= 0:
                    here = add_product(here, probabilities[entry], load(outer, row))
            store(wide, word, here)
            total = add_product(total, 1.0, here)
        store(wide, last, total)
        for lane in range(len(rows)):
            values, factor = out[rows[lane], position], wide[last, lane]
            factor = 1.0 / factor if factor > 0.0 else 0.0
            for word in range(words):
                values[word] = wide[word, lane] * factor


@compiled
def gather(sequences, rows, at, words):
    """words [T, LANES]: of the rows from `at` on, the last one again in lanes beyond the end."""
    for lane in range(LANES):
        row = rows[min(at + lane, len(rows) - 1)]
        for position in range(len(words)):
            words[position, lane] = sequences[row, position]


@compiled
def begin(tops, start, first, outer):
    """Set the outside scores of the roots, all others being 0."""
    outer[:] = 0.0
    for group, row in tops:
        for symbol in range(first[group], first[group + 1]):
            outer[row + symbol - first[group]] = start[symbol]


@compiled
def scores(sequences, rows, words, plan, tables, scaled, start, picked, posterior, inner, outer, products, out):
    """out [N, n] of `rows`: scores of the chart rows picked [n] (-1: 0); inside x outside ones if `posterior`."""
    leaves, jobs, pairs, tops = plan
    for at in range(0, len(rows), LANES):
        gather(sequences, rows, at, words)
        inside(words, leaves, jobs, pairs, tables, scaled, inner, products)
        if posterior:
            begin(tops, start, tables[0], outer)
            outside(jobs, pairs, tables, inner, outer, products)
        for lane in range(min(LANES, len(rows) - at)):
            for symbol in range(len(picked)):
                row = picked[symbol]
                if row >= 0:
                    score = inner[row, lane]
                    out[rows[at + lane], symbol] = score * outer[row, lane] if posterior else score


@compiled
def both(sequences, rows, at, words, plan, tables, scaled, start, inner, outer, products, evidence):
    """Inside and outside scores of the rows from `at` on, and their scaled probabilities."""
    leaves, jobs, pairs, tops = plan
    gather(sequences, rows, at, words)
    inside(words, leaves, jobs, pairs, tables, scaled, inner, products)
    begin(tops, start, tables[0], outer)
    for lane in range(min(LANES, len(rows) - at)):
        evidence[rows[at + lane]] = 0.0
        for group, row in tops:
            for symbol in range(tables[0][group], tables[0][group + 1]):
                score = inner[row + symbol - tables[0][group], lane]
                evidence[rows[at + lane]] += start[symbol] * score
    outside(jobs, pairs, tables, inner, outer, products)


@compiled
def conditionals(sequences, rows, words, plan, tables, scaled, start, leaf_rows, emissions, inner, outer, products,
                 wide, evidence, out):  # fmt: skip
    """out [N, T, V], 0 past a sentence's end, and the scaled probabilities evidence [N] of `rows`."""
    for at in range(0, len(rows), LANES):
        both(sequences, rows, at, words, plan, tables, scaled, start, inner, outer, products, evidence)
        for lane in range(min(LANES, len(rows) - at)):
            out[rows[at + lane], len(words) :] = 0.0
        read(leaf_rows, emissions, outer, rows[at : at + LANES], wide, out)


@compiled
def conditionals_at(sequences, rows, words, plan, tables, scaled, start, leaf_rows, emissions, inner, outer, products,
                    asked, order, columns, evidence, out):  # fmt: skip
    """out [M, V]: the same at `columns` [M] alone; those of row r are order[asked[r]:asked[r + 1]]."""
    entries, symbols, probabilities = emissions
    for at in range(0, len(rows), LANES):
        both(sequences, rows, at, words, plan, tables, scaled, start, inner, outer, products, evidence)
        for lane in range(min(LANES, len(rows) - at)):
            row = rows[at + lane]
            for k in range(asked[row], asked[row + 1]):
                values, position, total = out[order[k]], columns[order[k]], 0.0
                for word in range(len(entries) - 1):
                    here = 0.0
                    for entry in range(entries[word], entries[word + 1]):
                        leaf = leaf_rows[position, symbols[entry]]
                        if leaf >= 0:
                            here += probabilities[entry] * outer[leaf, lane]
                    values[word] = here
                    total += here
                values *= 1.0 / total if total > 0.0 else 0.0
