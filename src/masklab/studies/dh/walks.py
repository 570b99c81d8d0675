"""Figure 1 of Chiang and Yogatama (2023), from a real corpus: a walk of each chain and how it is spelt.

A panel per chain: the first synsets of its first training sequence, each with both of its outward edges; below,
the features that the corpora with and without the distributional property have there.
"""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from matplotlib.patches import FancyArrowPatch

from masklab.config.schema import MarkovCorpus
from masklab.corpora.markov.chains import draw_chains
from masklab.corpora.markov.features import draw_features
from masklab.errors import MaskLabError
from masklab.report import style
from masklab.symbols import COLUMN, read_header

SHOWN = 8  # synsets of a sequence
FORMS = ("#0072B2", "#D55E00")  # of a and b features; A and B of the other figures
_DOWN, _WITH, _WITHOUT = -0.85, -1.75, -2.4  # heights of the rows below the walk


def figure1(results, chosen, corpora=()):
    """How a sequence comes about; `corpora`: train.parquet of the corpus with and of that without the property."""
    walked, forms, facts = _read(corpora)
    config = MarkovCorpus(**facts["config"])
    chains = draw_chains(config.chains, facts["seed"])
    names = [_names(config, facts["seed"], walked, form) for form in forms]
    data = pd.DataFrame(
        row | {"with": names[0][k][row["position"]], "without": names[1][k][row["position"]]}
        for k, chain in enumerate(chains)
        for row in _steps(k, chain, walked[k])
    )
    shown = min(SHOWN, config.length)
    figure = style.new_figure(style.FULL, 1.85 * len(chains))
    place = "node it passes" if config.chains.edges == "released" else "synset"
    for k, axes in enumerate(np.atleast_1d(figure.subplots(len(chains), 1))):
        part = data[data["chain"] == k + 1]
        _draw(axes, part[part["position"] < shown], [form[k] for form in forms])
        style.panel_title(axes, f"k = {k + 1}: a walk of chain {k + 1}, and both edges of every {place}", k)
    return figure, data[data["position"] < shown].reset_index(drop=True)


def _read(corpora):
    """(synsets [k][L], forms [with, without][k][L], facts) of the first sequence of each chain."""
    drawn = []
    for path in corpora:
        facts = read_header(path)
        if not facts or facts.get("kind") != "markov" or facts["config"]["chains"]["features"] != "single":
            raise MaskLabError(f"{path}: Figure 1 needs a Markov corpus of single-token features")
        rows = pq.ParquetFile(path).read_row_group(0).to_pydict()
        first = [rows["chain"].index(k) for k in range(facts["config"]["chains"]["chains"])]
        n = facts["config"]["chains"]["synsets"]
        symbols = [np.asarray(rows[COLUMN][row]) for row in first]
        drawn.append(([s % n for s in symbols], [s // n for s in symbols], facts))
    if len(drawn) != 2 or any((a != b).any() for a, b in zip(drawn[0][0], drawn[1][0], strict=True)):
        raise MaskLabError("Figure 1 needs two corpora with the same walks: equal chains, length and seed")
    return drawn[0][0], [forms for _, forms, _ in drawn], drawn[0][2]


def _names(config, seed, walked, forms):
    names = draw_features(config.chains, seed).names
    n = config.chains.synsets
    return [
        [names[s + n * f] for s, f in zip(walk, form, strict=True)] for walk, form in zip(walked, forms, strict=True)
    ]


def _steps(k, chain, synsets):
    """Rows of one walk: the two edges of each synset, and which of them the walk took."""
    nodes = likeliest_nodes(chain, synsets)
    for position, node in enumerate(nodes):
        ends, after = chain.targets[node], nodes[position + 1] if position + 1 < len(nodes) else None
        taken = 0 if after is None or ends[0] == after else 1
        yield {
            "chain": k + 1,
            "position": position,
            "synset": int(synsets[position]),
            "next": int(chain.synset[ends[taken]]),
            "probability": float(chain.probabilities[taken]),
            "other": int(chain.synset[ends[1 - taken]]),
            "other_probability": float(chain.probabilities[1 - taken]),
        }


def likeliest_nodes(chain, synsets) -> list[int]:
    """The likeliest hidden nodes of a walk (Viterbi); under the paper's edges a synset's node is known."""
    best = {int(node): (0.0, [int(node)]) for node in np.flatnonzero(chain.synset == synsets[0])}
    for synset in synsets[1:]:
        after = {}
        for node, (score, path) in best.items():
            for target in set(chain.targets[node].tolist()):
                probability = chain.probabilities[chain.targets[node] == target].sum()
                if chain.synset[target] == synset and probability > 0:
                    total = score + np.log(probability)
                    if target not in after or total > after[target][0]:
                        after[target] = (total, [*path, target])
        if not after:
            raise MaskLabError(f"synset {synset} does not follow in the chain: the corpus is not of this chain")
        best = after
    return max(best.values(), key=lambda value: value[0])[1]


def _draw(axes, part, forms):
    axes.set(xlim=(-1.75, len(part) - 0.05), ylim=(_WITHOUT - 0.4, 0.45))
    axes.axis("off")
    for row in part.itertuples():
        x, last = row.position, row.position == len(part) - 1
        _node(axes, x, 0, row.synset, "0.2")
        if last:
            axes.text(x + 0.42, 0, "…", ha="left", va="center")
            continue
        _arrow(axes, (x, 0), (x + 1, 0), "0.2", 1.2)
        both = row.probability + (row.other_probability if row.other == row.next else 0)
        axes.text(x + 0.5, 0.11, f"{both:.2g}", ha="center", va="bottom", fontsize=6.5)
        if row.other != row.next:
            _node(axes, x + 0.5, _DOWN, row.other, "0.6")
            _arrow(axes, (x, 0), (x + 0.5, _DOWN), "0.6", 0.8)
            axes.text(x + 0.36, _DOWN / 2 + 0.02, f"{row.other_probability:.2g}", color="0.4", fontsize=6.5, ha="left")
    for height, column, form in ((_WITH, "with", forms[0]), (_WITHOUT, "without", forms[1])):
        for position, name in zip(part["position"], part[column], strict=True):
            color = FORMS[form[position]]
            axes.text(position, height, name, ha="center", va="center", color=color, fontweight="bold", fontsize=7.5)
    for height, text in ((0, "synsets"), (_DOWN, "the other edge"), (_WITH, "w/ DH: a or b\nby a coin")):
        axes.text(-1.7, height, text, va="center", fontsize=7.5)
    axes.text(-1.7, _WITHOUT, f"w/o DH: all {'ab'[forms[1][0]]}", va="center", fontsize=7.5)


def _node(axes, x, y, synset, color):
    axes.plot([x], [y], marker="o", markersize=15, markerfacecolor="white", markeredgecolor=color, markeredgewidth=0.9)
    axes.text(x, y, str(synset), ha="center", va="center_baseline", fontsize=6.5, color=color)


def _arrow(axes, start, end, color, width):
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=7, shrinkA=10, shrinkB=10, color=color, linewidth=width
        )
    )
