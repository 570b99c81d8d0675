"""The pattern task: is there one of several patterns S* S1 S* S2 S* S3 S* in a sequence of synsets?

Chiang & Yogatama (2023), section 4.2 and appendix B. Labels depend on synsets alone and come from an automaton. D1, D2
are the chains that the synsets are drawn from; A, B the form that spells them. As the chains are drawn, one class may
be much larger than the other, and larger in D1 than in D2; `balanced` makes both halves of every domain.
"""

import numpy as np
import pyarrow as pa

from masklab import symbols
from masklab.config.schema import PatternsTask
from masklab.corpora.markov.chains import draw_chains, walk
from masklab.corpora.markov.features import draw_features
from masklab.errors import MaskLabError
from masklab.rng import generator
from masklab.tasks import UNITS, label_facts

DOMAINS = {"A-D1": (0, 0), "B-D1": (1, 0), "A-D2": (0, 1), "B-D2": (1, 1)}  # (form, chain)
CHUNK = 4096  # sequences labelled together
TRIES = 1000  # draws of patterns before giving up
BALANCED = (0.3, 0.7)  # shares of positive sequences between which patterns lie that are to be balanced


def patterns(config: PatternsTask, name: str, seed: int, law_seed: int | None = None):
    """Build a labels task; splits are Arrow tables of `symbols`, `label` (0, 1), `domain` and `units`, the synsets.

    Training and validation rows are A-D1, and B-D2 with share `mix`: of the first n rows floor(n mix) are B-D2,
    for every n, so that a prefix is a smaller training set of the same mix (and within the larger ones; the released
    code draws every size anew). With `balanced`, so is every first half of the rows of a domain: of each two neighbours
    one is positive. The test split holds `test` rows of each domain; those of B hold the same synsets
    and labels as those of A.
    """
    if config.chains.chains < 2:
        raise MaskLabError(f"tasks.{name}.chains: the domains D1 and D2 need two chains (got {config.chains.chains})")
    if config.set_size > config.chains.synsets:
        raise MaskLabError(
            f"tasks.{name}.set_size: {config.set_size} of {config.chains.synsets} synsets cannot be drawn"
        )
    law_seed = seed if law_seed is None else law_seed
    chains, features = draw_chains(config.chains, law_seed), draw_features(config.chains, law_seed)
    address = ("patterns", config.chains.seed, config.seed)
    rng = generator(seed, *address, "sets")
    sets = _even_sets(config, name, chains[:2], rng) if config.balanced else draw_sets(config, rng)
    draw = _balanced if config.balanced else _as_drawn

    def sequences(split, domain, count):
        form, which = DOMAINS[domain]
        rng = generator(seed, *address, "walks", split, which)
        synsets, labels = draw(chains[which], count, config.length, sets, rng)
        units = symbols.column(synsets, np.full(count, config.length))
        return symbols.column(*features.spell(synsets, form)), units, labels

    splits = {}
    for split, count in (("train", config.train), ("valid", config.valid)):
        other = mixed(count, config.mix)
        parts = [sequences(split, "A-D1", int((~other).sum())), sequences(split, "B-D2", int(other.sum()))]
        order = np.empty(count, np.int64)  # where in A-D1 then B-D2 each row lies
        order[~other], order[other] = np.split(np.arange(count), [len(parts[0][-1])])
        splits[split] = _table(parts, ["A-D1", "B-D2"], features.names).take(pa.array(order))
    splits["test"] = _table([sequences("test", d, config.test) for d in DOMAINS], list(DOMAINS), features.names)
    facts = label_facts(splits, [0, 1], False, "accuracy") | {
        "mix": config.mix,
        "domains": list(DOMAINS),
        "positive": {split: _positive(table) for split, table in splits.items()},
    }
    return splits, facts


def _as_drawn(chain, count, length, sets, rng):
    """Walks [count, length] and their labels."""
    synsets = walk(chain, count, length, rng)
    return synsets, match(synsets, sets)


def _balanced(chain, count, length, sets, rng):
    """Walks, of each two neighbours one positive, by a coin; walks of a class that is full are dropped."""
    labels = np.repeat(rng.random(-(-count // 2)) < 0.5, 2)
    labels[1::2] ^= True
    labels = labels[:count]
    synsets, filled = np.empty((count, length), np.uint16), [0, 0]
    places = [np.flatnonzero(labels == label) for label in (False, True)]
    while any(done < len(wanted) for done, wanted in zip(filled, places, strict=True)):
        walks = walk(chain, CHUNK, length, rng)
        positive = match(walks, sets)
        for label, wanted in enumerate(places):
            found = walks[positive == label][: len(wanted) - filled[label]]
            synsets[wanted[filled[label] : filled[label] + len(found)]] = found
            filled[label] += len(found)
    return synsets, labels


def _even_sets(config, name, chains, rng):
    """The first sets under which the share of positive sequences of every chain lies between those of `BALANCED`."""
    walks = [walk(chain, CHUNK, config.length, rng) for chain in chains]
    for _ in range(TRIES):
        sets = draw_sets(config, rng)
        shares = [match(synsets, sets).mean() for synsets in walks]
        if BALANCED[0] <= min(shares) and max(shares) <= BALANCED[1]:
            return sets
    low, high = (f"{share:.0%}" for share in BALANCED)
    raise MaskLabError(
        f"tasks.{name}.balanced: {TRIES} draws of patterns gave none that {low} to {high} of the sequences of each"
        " chain match; change patterns, set_size or length, or set balanced: false"
    )


def mixed(count: int, mix: float) -> np.ndarray:
    """Which of `count` rows belong to the other domain, [count] bool: floor(n mix) of the first n, for every n."""
    quota = np.floor(np.arange(count + 1) * mix + 1e-9)
    return np.diff(quota) > 0


def draw_sets(config: PatternsTask, rng) -> np.ndarray:
    """The sets of all patterns, [patterns, 3, set_size] synsets; sets may overlap, within one all differ."""
    draws = rng.random((config.patterns, 3, config.chains.synsets))
    return np.argsort(draws, axis=-1)[..., : config.set_size]


def match(synsets, sets) -> np.ndarray:
    """Whether each sequence matches any pattern: synsets [B, L], sets [P, 3, size] -> [B] bool.

    One automaton per pattern: its state is how many sets were met in order, and it moves on at the first synset
    of the next set (earliest is best, since what follows does not depend on where a set was met).
    """
    synsets = np.asarray(synsets)
    width = max(int(synsets.max(initial=0)), int(sets.max())) + 1
    moves = np.zeros((width, len(sets), 4), np.uint8)  # 1 where a synset leads a pattern from this state on
    for pattern, three in enumerate(sets):
        for state, members in enumerate(three):
            moves[members, pattern, state] = 1
    moves = moves.ravel()
    base = np.arange(len(sets)) * 4
    matched = []
    for start in range(0, len(synsets), CHUNK):
        part = synsets[start : start + CHUNK].astype(np.int64) * (4 * len(sets))
        state = np.zeros((len(part), len(sets)), np.int64)
        for step in range(part.shape[1]):
            state += moves[part[:, step, None] + (base + state)]
        matched.append((state == 3).any(1))
    return np.concatenate([np.zeros(0, bool), *matched])


def _table(parts, domains, names):
    """Rows of several domains one below the other."""
    spelt, units, labels = zip(*parts, strict=True)
    numbers = pa.list_(pa.uint16())
    table = pa.table(
        {
            symbols.COLUMN: pa.chunked_array(spelt, numbers),
            "label": np.concatenate(labels).astype(np.int64),
            "domain": pa.array(np.repeat(domains, [len(each) for each in labels])),
            UNITS: pa.chunked_array(units, numbers),
        }
    )
    return symbols.with_header(table, names)


def _positive(table):
    """Share of positive rows of each domain of a split."""
    labels, domains = table["label"].to_numpy(), np.asarray(table["domain"])
    return {domain: float(labels[domains == domain].mean()) for domain in DOMAINS if (domains == domain).any()}
