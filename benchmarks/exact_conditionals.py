"""Pr(x_t | x_-t) of a grammar's sentences: one inside-outside pass against the paper's |V| x T inside passes, one core.

Liu et al. (2023), appendices A.2 and E, compute the joint probability of the sentence with every word of the vocabulary
at every position. Two peers do that: a chart in NumPy as one would write it, the |V| variants of a position together,
products of children and rules as matrix products; and our own inside pass over all variants, which knows which spans
can occur. Ends in `ratio:`, conditionals (distributions of one word) per second, ours over the NumPy chart's. CPU
seconds, so that other work on the machine counts little. All must agree to 1e-10.
"""

import argparse
import time

import numpy as np

from masklab.config.schema import Grammar
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import sample


def numpy_inside(sentences, emissions, binary, start):
    """Probabilities of sentences [B, T] of one length by a dense chart; emissions [n, V], binary [n, n * n]."""
    batch, length = sentences.shape
    n = len(start)
    chart = np.zeros((length, length + 1, batch, n))  # start, width
    chart[:, 1] = emissions.T[sentences.T]
    for width in range(2, length + 1):
        for at in range(length - width + 1):
            splits = np.arange(1, width)
            left, right = chart[at, splits], chart[at + splits, width - splits]  # [K, B, n]
            pairs = np.matmul(left.transpose(1, 2, 0), right.transpose(1, 0, 2))  # [B, n, n]
            chart[at, width] = pairs.reshape(batch, n * n) @ binary.T
    return chart[0, length] @ start


def by_numpy(law, sentences, lengths):
    """The paper's way, [sentences: [T, V]]."""
    rules = law.rules
    binary = np.zeros((len(rules),) * 3)
    binary[tuple(rules.binary.T)] = rules.binary_probabilities
    binary, emissions, found = binary.reshape(len(rules), -1), rules.emissions(), []
    for sentence, length in zip(sentences, lengths, strict=True):
        rows = []
        for t in range(length):
            variants = np.repeat(sentence[None, :length].astype(int), law.symbols, 0)
            variants[:, t] = np.arange(law.symbols)
            joint = numpy_inside(variants, emissions, binary, rules.start)
            rows.append(joint / joint.sum())
        found.append(np.array(rows))
    return found


def by_our_inside(law, sentences, lengths):
    """The same by our inside pass, all variants of a sentence at once."""
    found = []
    for sentence, length in zip(sentences, lengths, strict=True):
        variants = np.tile(sentence[:length].astype(int), (length, law.symbols, 1))
        for t in range(length):
            variants[t, :, t] = np.arange(law.symbols)
        variants = variants.reshape(-1, length)
        joint = np.exp(law.log_probability(variants, np.full(len(variants), length))).reshape(length, -1)
        found.append(joint / joint.sum(1, keepdims=True))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", type=int, default=4096, help="sentences a round")
    parser.add_argument("--inside", type=int, default=16, help="of them by our inside pass")
    parser.add_argument("--numpy", type=int, default=1, help="of them by the NumPy chart")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved; the fastest of each counts")
    options = parser.parse_args()
    law = Law(draw_rules(Grammar(), 1))
    sentences, lengths = sample(law.rules, options.ours, 1, "benchmark")
    lead = np.argsort(np.abs(lengths - round(lengths.mean())), kind="stable")[: max(options.inside, options.numpy)]
    order = np.concatenate([lead, np.setdiff1d(np.arange(options.ours), lead)])  # the peers' have the mean length
    sentences, lengths = sentences[order], lengths[order]
    out = np.empty((*sentences.shape, law.symbols))
    law.conditionals(sentences, lengths, out=out)  # compile, plan
    ways = {
        "ours": (options.ours, lambda count: law.conditionals(sentences, lengths, out=out)),
        "our inside pass, |V| x T times": (options.inside, lambda n: by_our_inside(law, sentences[:n], lengths[:n])),
        "NumPy chart, |V| x T times": (options.numpy, lambda n: by_numpy(law, sentences[:n], lengths[:n])),
    }
    best = dict.fromkeys(ways, 0.0)
    print(f"mean length {lengths.mean():.2f}; of the peers' sentences {lengths[0]}")
    for _ in range(options.rounds):
        for name, (count, way) in ways.items():
            began = time.process_time()
            found = way(count)
            rate = lengths[:count].sum() / (time.process_time() - began)
            best[name] = max(best[name], rate)
            far = max(np.abs(out[k, : lengths[k]] - found[k][: lengths[k]]).max() for k in range(min(count, 16)))
            print(f"{name}: {rate:,.1f} conditionals/s, at most {far:.0e} from ours", flush=True)
            assert far < 1e-10
    for name, rate in best.items():
        print(f"{name}: {rate:,.1f} conditionals/s, ours {best['ours'] / rate:,.0f} times as many")
    print(f"ratio: {best['ours'] / best['NumPy chart, |V| x T times']:.0f}")


if __name__ == "__main__":
    main()
