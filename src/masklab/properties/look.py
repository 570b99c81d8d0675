"""What a dictionary says, written down: a table of its properties, and a page that opens without a network."""

import base64
import io
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from masklab.files import write_csv, write_parquet
from masklab.pages.templating import fill
from masklab.properties import agreement, tradeoff
from masklab.properties.coded_words import Sample
from masklab.properties.coherence import TOP, Coherence, coherence
from masklab.properties.inventory import LEAST, Property, inventory
from masklab.properties.similarity import Neighbours, WordNet
from masklab.report import style
from masklab.rng import generator
from masklab.sparse.lasso import lasso

PAGE, TABLE = "index.html", "properties"
HERE, NULL = "this one", "initial weights"  # whose properties and codes they are
TRAINED = 50_000  # vectors, at most, that dictionaries of other sizes are learned from


def look(
    words,
    states: Tensor,
    dictionary: Tensor,
    settings: dict,
    folder,
    about: dict,
    untrained: tuple[Tensor, Tensor],
    wordnet=None,
    progress=None,
):
    """Write `index.html`, `properties.parquet` and `properties.csv` to a folder; returns what the page says.

    Args:
        words: `coded_words.Words` of each sequence; states: the unit vectors of all their tokens, end to end [n, d].
        dictionary: [d, k]. settings: its penalty, solver, iterations and batch_size.
        about: title; facts: (what, value) pairs that head the page; note: a sentence, or "".
        untrained: states [n, d] of the same tokens in the encoder with initial weights, and a dictionary of theirs.
        wordnet: folder of a WordNet database; None: nothing is compared with WordNet.
    """
    step = progress or (lambda done, total: None)
    other = WordNet(wordnet) if wordnet is not None else None
    rng = generator(1, "properties")
    order = torch.from_numpy(rng.permutation(len(states)))
    count = min(tradeoff.CODED, len(states) // 2)
    coded, train = states[order[:count]], states[order[count:][:TRAINED]]
    penalty, solver, k = settings["penalty"], settings["solver"], dictionary.shape[1]
    step(0, 5)
    sample = Sample.of(words, lasso(states, dictionary, penalty, solver), k)
    step(1, 5)
    found = inventory(sample)
    step(2, 5)
    alike = [Neighbours(sample), *([other] if other else [])]
    coherent = [coherence(found, similarity, rng) for similarity in alike]
    compared = [(HERE, asdict(one)) for one in coherent]
    pairs = [(HERE, *row) for row in _agreement(sample, other)]
    null = Sample.of(words, lasso(*untrained, penalty, solver), untrained[1].shape[1])
    properties = inventory(null)
    compared += [(NULL, asdict(coherence(properties, similarity, rng))) for similarity in alike]
    pairs += [(NULL, *row) for row in _agreement(null, other)]
    step(3, 5)
    penalties = tradeoff.penalties(coded, dictionary, penalty, solver)
    step(4, 5)
    sizes = tradeoff.sizes(train, coded, k, settings)
    table = frame(found, coherent)
    write_parquet(table, Path(folder) / f"{TABLE}.parquet")
    write_csv(table, Path(folder) / f"{TABLE}.csv")
    dead = sum(not each.active for each in found)
    shown = sorted((each for each in found if each.words), key=lambda each: -_rank(each, coherent[-1]))
    said = about | {
        "tokens": len(sample.form), "sequences": len(sample.sequences), "atoms": len(found), "dead": dead,
        "unnamed": len(found) - dead - len(shown), "here": penalties[tradeoff.FACTORS.index(1)],
        "coherent": [asdict(each) for each in coherent], "agreement": pairs, "penalties": penalties, "sizes": sizes,
        "figure": _figure(penalties, sizes, penalty, k), "properties": shown, "table": TABLE, "coded": count,
        "iterations": min(settings["iterations"], tradeoff.ITERATIONS), "least": LEAST, "top": TOP,
        "compared": compared,
    }  # fmt: skip
    fill(Path(folder) / PAGE, "dictionary.html", said)
    step(5, 5)
    return said


def _agreement(sample, wordnet) -> list[tuple]:
    """(what overlaps, beside what, mean of the one, of the other): the same pairs in all samples of the same words."""
    rng = generator(1, "properties", "agreement")
    rows = [("two occurrences of a word", "the same tokens, of different words", *agreement.of_one_word(sample, rng))]
    if wordnet:
        said = "two synonyms", "words about as frequent of the same part of speech"
        rows.append((*said, *agreement.of_synonyms(sample, wordnet, rng)))
    return rows


def _rank(each: Property, coherent: Coherence) -> float:
    return coherent.of.get(each.number, -1.0)


def frame(found: list[Property], coherent: list[Coherence]) -> pd.DataFrame:
    """A row per property: what it is active on, its words, and its coherence and intrusion by each similarity."""
    rows = []
    for each in found:
        row = {"property": each.number, "active": each.active, "mean": each.mean, "largest": each.largest}
        row |= {"covered": each.covered, "words": " ".join(word for word, _ in each.words)}
        for one in coherent:
            by = one.name.lower()
            row |= {f"coherence_{by}": one.of.get(each.number, np.nan)}
            row |= {f"intrusion_{by}": one.found.get(each.number, np.nan)}
        rows.append(row)
    return pd.DataFrame(rows)


@style.paper
def _figure(penalties, sizes, penalty, atoms) -> str:
    """Entries of a code and what is kept of a vector against the penalty and the atoms, as a PNG in base64."""
    figure = style.new_figure(style.FULL, 2.1)
    left, right = figure.subplots(1, 2)
    for axes, rows, key, name, here in (
        (left, penalties, "penalty", "λ", penalty),
        (right, sizes, "atoms", "atoms (k)", atoms),
    ):
        x = [row[key] for row in rows]
        blue, red = style.COLORS[1], style.COLORS[2]
        axes.plot(x, [row["nonzeros"] for row in rows], marker="o", color=blue)
        beside = axes.twinx()
        beside.plot(x, [row["kept"] for row in rows], marker="s", linestyle="--", color=red)
        axes.set(xscale="log", xlabel=name, ylim=(0, None))
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.minorticks_off()
        axes.axvline(here, color=style.GREY, linewidth=0.8, zorder=1)
        axes.set_ylabel("entries of a code", color=blue)
        beside.set(ylim=(0, 1))
        beside.set_ylabel("kept of a vector", color=red)
        beside.spines["right"].set_visible(True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return base64.b64encode(buffer.getvalue()).decode()
