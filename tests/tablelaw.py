"""A law given by its whole table: everything about it can be counted by hand. For tests."""

import itertools

import numpy as np


class TableLaw:
    """Sequences of 1 to `longest` of `symbols` symbols, whose neighbours like each other as drawn from `seed`."""

    def __init__(self, symbols: int, longest: int, seed: int):
        rng = np.random.default_rng(seed)
        self.symbols = symbols
        coupling = 1.5 * rng.normal(size=(symbols, symbols))  # of neighbours
        self.tables = []
        for length in range(1, longest + 1):
            words = np.indices((symbols,) * length)
            energy = sum((coupling[words[t], words[t + 1]] for t in range(length - 1)), np.zeros((symbols,) * length))
            self.tables.append(np.exp(energy) / np.exp(energy).sum())
        total = sum(table.sum() for table in self.tables)
        self.tables = [table / total for table in self.tables]

    def conditionals(self, sequences, lengths=None):
        sequences = np.asarray(sequences)
        lengths = np.full(len(sequences), sequences.shape[1]) if lengths is None else lengths
        found = np.zeros((*sequences.shape, self.symbols))
        for n, (row, length) in enumerate(zip(sequences, lengths, strict=True)):
            for t in range(length):
                joint = self.tables[length - 1][(*row[:t], slice(None), *row[t + 1 : length])]
                found[n, t] = joint / joint.sum()
        return found

    def draw(self, count: int, rng) -> list[np.ndarray]:
        words = [np.array(w) for table in self.tables for w in itertools.product(*map(range, table.shape))]
        chances = np.concatenate([table.ravel() for table in self.tables])
        return [words[i] for i in rng.choice(len(words), count, p=chances / chances.sum())]


def from_facts(facts):
    return TableLaw(facts["config"]["symbols"], facts["config"]["longest"], facts["seed"])
