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


def of_header(facts):
    return TableLaw(facts["config"]["symbols"], facts["config"]["longest"], facts["seed"])


def world(root):
    """Corpus, task and trained models under `root`: tokens, tokenizer, task, folders {model: checkpoint}, law."""
    from types import SimpleNamespace

    import pyarrow as pa

    from masklab import symbols
    from masklab.config.schema import Encoder
    from masklab.files import write_json, write_table
    from masklab.tokenizers import save_tokenizer, symbol_tokenizer
    from masklab.tokens import write_symbol_tokens
    from masklab.training.launch import launch

    facts = {"kind": "table", "seed": 3, "config": {"symbols": 4, "longest": 4}}
    law, rng = of_header(facts), np.random.default_rng(1)
    names = [f"w{i}" for i in range(4)]
    tokens = root / "tokens" / "corpus" / "symbols"

    def columns(count):
        rows = law.draw(count, rng)
        return symbols.column(np.concatenate(rows), [len(row) for row in rows]), rows

    for split, count in (("train", 3000), ("valid", 60), ("test", 200)):
        write_symbol_tokens(columns(count)[0], 9, 6, tokens, split, {"names": names, **facts})
    save_tokenizer(symbol_tokenizer(names), root / "tokenizer", 6)
    (root / "task").mkdir()
    for split, count in (("train", 300), ("valid", 80), ("test", 120)):
        column, rows = columns(count)
        label = np.array([int((row == 2).any()) + int(row[0] == 1) for row in rows])
        task = symbols.with_header(pa.table({"symbols": column, "label": label}), names)
        write_table(task, root / "task" / f"{split}.parquet")
    write_json({"kind": "labels", "labels": 3, "metric": "accuracy"}, root / "task" / "task.json")
    shape = {"layers": 1, "hidden": 32, "heads": 4, "max_positions": 8, "dropout": 0.1, "positions": "absolute"}
    encoders = {
        "bert": (Encoder(**shape), 500),
        "lstm": (Encoder(**shape | {"kind": "lstm", "norm": "pre"}), 60),
        "lookup": (Encoder(kind="lookup"), 0),
    }
    folders = {}
    for name, (encoder, steps) in encoders.items():
        sgd = {"kind": "sgd", "lr": 0.1, "schedule": "constant", "momentum": 0.9}
        run = run_of(root, name, encoder, steps=steps, **({"optimiser": sgd} if name == "lstm" else {}))
        launch(run)
        folders[name] = root / name / f"step-{steps}"
    return SimpleNamespace(tokens=tokens, folders=folders, task=root / "task", law=law, root=root)


def run_of(root, name, encoder, steps, objective=None, tasks=None, **model):
    """A pre-training run on the corpus of `world`, one mask per sequence."""
    from masklab.config.schema import Model, Objective
    from masklab.training.run import Run

    keys = {"corpus": "corpus", "tokenizer": "t", "encoder": "e", "objective": "o", "steps": steps, "batch_size": 64,
            "masking": {"count": "one"}, "optimiser": {"lr": 5e-3, "warmup": 0.1},
            "checkpoints": [steps] if steps else [], **model}  # fmt: skip
    return Run(
        name=name, seed=1, model=Model(**keys), encoder=encoder, objective=objective or Objective(mlm=1),
        tokens=root / "tokens" / "corpus" / "symbols", tokenizer=root / "tokenizer", output=root / name,
        state=root / "state" / name, tasks=tasks or {},
    )  # fmt: skip
