"""Section 6 of Chiang and Yogatama (2023) on text: words, phrases and sentences replaced by noisy paraphrases.

Of each text of a test example that has a parse: the most salient word by a synonym of WordNet (`phrases.synonyms`), the
most salient phrase of up to four words and the longest phrase by translation there and back (`phrases.translation`).
Salient is what the model minds that was fine-tuned on the most rows; its replacements serve all sizes and all points of
fine-tuning. With `drawn` a word of each text that is drawn is replaced as well, in a replicate the same one for every
model. As in the released code, a sentence and an example are those with the longest phrase replaced.

Before fine-tuning: total variation at the mask of the paper's queries (`phrases.queries`), over the vocabulary, of
examples between the verbalisers. After: between the predictions for the example. Both are of the text as the task has
it, where the parse's words lie in it.

Rows, of each level, size and seed: see `replacement.correlated`; split = the level, or, with `at` the number of
updates, the level in the `course` of fine-tuning. Accuracy and its kin, split = `test`, are of the examples that are
used. The first replacements of each level are rows too: split = the level, `replaced`; metric = the text with the
paraphrase in brackets behind what it replaces; value = the change of the prediction, n = its number.

With `in_text` words and phrases are asked in their own text as well: the word before them is hidden, then the one
behind, and the distance is the mean of the two. Of words there are then three things more, however they are asked. A
row `told`, split = the level, `told`: in what share of them the synonym lies nearer than another word
(`phrases.others`). A level at which their form is held fixed, with which both distances go even of initial weights:
correlations of what is left of the distances after least squares on `nuisances`. And each of these levels once more
with the distances of initial weights in the place of the model's (`models.initial`), of the same words: what goes with
these as much needs no pre-training. None of this is in the paper.

Items are in the order of the texts, NaN where a text has no such feature: most salient words are of other texts for
every classifier, and test sets are drawn again text by text.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from masklab.config.adopted import found
from masklab.config.sources import expand
from masklab.errors import MaskLabError
from masklab.files import sha256
from masklab.jobs.provenance import input_mark
from masklab.models.checkpoint import load_checkpoint
from masklab.models.initial import initial
from masklab.phrases import (
    COURSE,
    DRAWN_WORD,
    EXAMPLE,
    LONG,
    MEANS,
    REPLACED,
    SHORT,
    TOLD,
    WITH,
    WORD,
    WORDS,
    held_fixed,
    in_text,
    is_held_fixed,
    is_untaught,
    split,
    untaught,
)
from masklab.phrases.distances import template_distances, total_variation, without
from masklab.phrases.examples import Feature, Text, read_examples
from masklab.phrases.others import others, spelling
from masklab.phrases.parses import NOUN, VERB, keyed, read_trees
from masklab.phrases.parses import SHORT as FEW
from masklab.phrases.queries import by_template, filled, in_its_text, query_ids, sentence_query, verbaliser_ids
from masklab.phrases.saliency import probabilities, saliency
from masklab.phrases.synonyms import Synonyms
from masklab.phrases.translation import Translator, paraphrases
from masklab.probes.outcomes import of_classes, of_items, seed_kept
from masklab.probes.replacement import classifiers, correlated
from masklab.rng import generator
from masklab.tasks.encoding import content_ends, content_ids, encode_split, joined
from masklab.tokenizers import load_tokenizer
from masklab.wordnet import place_of

LEAST = 3  # features that a correlation needs
SHOWN = 5  # replacements of each level that are kept as text


def measure(context) -> list[dict]:
    """Score rows and item records of one checkpoint; see the module. What is missing is said before any training."""
    probe, device = context.probe, context.device
    tokenizer = load_tokenizer(context.checkpoint)
    sources = Sources(probe, device)
    parses = [path for file in probe.parses for path in expand(file)]
    trees = keyed(tree for path in parses for tree in read_trees(path))
    tasks = {}
    for name in context.tasks:
        folder, facts = context.task(name, "labels")
        examples, answers = read_examples(folder / "test.parquet", trees, probe.examples), None
        if probe.verbalisers is not None:
            if len(probe.verbalisers) != facts["labels"]:
                words, labels = len(probe.verbalisers), facts["labels"]
                raise MaskLabError(f"probes.{context.name}.verbalisers: {words} words; {name!r} has {labels} labels")
            if "{b}" in probe.query and any(example.texts[1] is None for example in examples):
                raise MaskLabError(f"probes.{context.name}.query: {{b}} is a second text; {name!r} has one text a row")
            answers = verbaliser_ids(tokenizer, probe.verbalisers, f"probes.{context.name}.verbalisers")
        tasks[name] = folder, facts, answers, examples
    marks = [] if context.state_folder is None else [_marks(probe, parses)]
    rows, done, total = [], 0, len(tasks) * len(probe.seeds)
    for name, (folder, facts, answers, examples) in tasks.items():
        for seed in probe.seeds:

            def tell(share, done=done, name=name):
                context.progress(done + share, total, name)

            measure = partial(
                _measured, context, name, folder, facts, answers, examples, seed, tokenizer, sources, tell
            )
            rows += seed_kept(context, name, facts, seed, measure, marks)
            done += 1
            context.progress(done, total, name)
    return rows


def _marks(probe, parses) -> list:
    """What all files say that paraphrases come from: models by `input_mark`, since it would take long to read them."""
    wordnet = [] if probe.wordnet is None else _files(place_of(probe.wordnet))
    models = [_files(found(model)) for model in (probe.there, probe.back) if model is not None]
    return [
        [sha256(path) for path in parses],
        [[file.name, sha256(file)] for file in wordnet],
        [[[file.name, input_mark(file)] for file in files] for files in models],
    ]


def _files(folder) -> list[Path]:
    return sorted(file for file in Path(folder).iterdir() if file.is_file() and not file.name.startswith("."))


class Sources:
    """Where paraphrases come from: MaskLabError in one line where a database or a model is missing."""

    def __init__(self, probe, device):
        self.synonyms = None if probe.wordnet is None else Synonyms(probe.wordnet)
        self.pair = None
        if probe.there is not None:
            self.pair = [Translator(found(model), device) for model in (probe.there, probe.back)]


def _measured(context, name, folder, facts, answers, examples, seed, tokenizer, sources, tell):
    probe, device = context.probe, context.device
    model = load_checkpoint(context.checkpoint, device).eval()
    longest = min(probe.max_length, model.config.max_positions)
    splits = [encode_split(folder / f"{part}.parquet", tokenizer, longest, device) for part in ("train", "valid")]
    reader, rows, levels, texts = Reader(tokenizer, longest, device), [], None, Texts(examples)
    labels = np.array([example.label for example in examples])
    for size, updates, classifier in classifiers(context, name, facts, splits, seed, tell):
        shared = {"task": name, "train_size": size, "seed": seed}
        first = levels is None
        if first:
            address = context.seed, context.name
            chosen = features(examples, classifier, reader, sources, (*address, name), probe.drawn)
            levels = measured_before(model, chosen, reader, probe, answers, context.seed)
            if probe.in_text:
                rows += told(model, chosen, levels, reader, probe, (*address, "others", name), texts, **shared)
        if updates is None:
            given = reader.answers(classifier, [example.texts for example in examples]).argmax(1)
            rows += of_classes(labels, given, facts["labels"], split="test", **shared)
        changes = {id(own): reader.changes(classifier, own) for own in chosen.values()}
        for level, asked in levels.items():
            own, after = asked.features, changes[id(asked.features)]
            columns = shared | {"split": level if updates is None else split(level, COURSE)}
            address = context.seed, context.name, "features", level
            found_rows = texts.placed(correlated(*asked.left(asked.before, after), address, **columns), own)
            if updates is not None:  # items have no `at`
                found_rows = [row | {"at": float(updates)} for row in found_rows if "predictions" not in row]
            rows += found_rows
            if first and not (is_held_fixed(level) or is_untaught(level)):
                rows += [
                    shared | {"split": split(level, REPLACED), "metric": feature.shown(), "value": value, "n": at}
                    for at, (feature, value) in enumerate(zip(own[:SHOWN], after.tolist(), strict=False), 1)
                ]
    return rows


@dataclass(frozen=True)
class Asked:
    """The features of a level, distances of what the pre-trained model predicts of them, [N], and `nuisances` that are
    held fixed, [N, K], or None."""

    features: list
    before: np.ndarray
    fixed: np.ndarray | None = None

    def left(self, *distances) -> list:
        """Distances, [N] each, without what goes with what is held fixed."""
        return [of if self.fixed is None else without(of, self.fixed) for of in distances]


class Texts:
    """The texts of examples that have a parse, in order."""

    def __init__(self, examples):
        self.at = {id(text): row for row, text in enumerate(text for example in examples for text in example.parsed)}

    def placed(self, rows, features) -> list[dict]:
        """Rows and records of features, one item each, with the items of records at the places of their texts."""
        places = [self.at[id(feature.text)] for feature in features]
        return [self._placed(row, places) if "predictions" in row else row for row in rows]

    def _placed(self, record, places):
        lists = {name: np.full(len(self.at), np.nan, np.float32) for name in ("targets", "predictions")}
        for name, values in lists.items():
            values[places] = record[name]
        return record | lists


class Reader:
    """Texts as a model reads them."""

    def __init__(self, tokenizer, longest, device):
        self.tokenizer, self.longest, self.device = tokenizer, longest, device

    def pairs(self, texts) -> list[tuple]:
        """(ids of the first text, ids of the second or None) of examples' texts."""
        firsts = content_ids(self.tokenizer, [first for first, _ in texts])
        seconds = content_ids(self.tokenizer, [second or "" for _, second in texts])
        return [(a, None if second is None else b) for a, b, (_, second) in zip(firsts, seconds, texts, strict=True)]

    def answers(self, classifier, texts) -> np.ndarray:
        """A classifier's probabilities, [N, C]."""
        return probabilities(classifier, [joined(*pair, self.longest) for pair in self.pairs(texts)], self.device)

    def changes(self, classifier, features) -> np.ndarray:
        """Total variation between predictions before and after each replacement, [N]."""
        whole = [feature.example.texts for feature in features] + [feature.texts for feature in features]
        given = self.answers(classifier, whole)
        return total_variation(given[: len(features)], given[len(features) :])

    def spans(self, text: Text, nodes) -> list[tuple[int, int, int]]:
        """(text, first token, token after the last) of nodes: all tokens that hold some of it, `cat.` of `cat`."""
        (ends,) = content_ends(self.tokenizer, [text.text])
        places = np.array([text.place(node) for node in nodes]).reshape(-1, 2)
        begins, behind = np.searchsorted(ends, places, side="right").T
        last = np.minimum(np.searchsorted(ends, places[:, 1]) + 1, len(ends))
        return [(text.side, *span) for span in zip(begins.tolist(), np.maximum(behind, last).tolist(), strict=True)]


def features(examples, classifier, reader, sources, address, drawn=False) -> dict[str, list[Feature]]:
    """Level -> the features that are replaced; drawn: words that are drawn, too, the same for every model
    of a replicate."""
    texts = [(example, text) for example in examples for text in example.parsed]
    pairs = reader.pairs([example.texts for example, _ in texts])
    chosen: dict[str, list[Feature]] = {}
    if sources.synonyms is not None:
        rng = generator(*address, "synonyms")
        words = _most_salient(texts, pairs, classifier, reader, lambda node: len(node) == 1)
        given = (_reworded(*word, sources.synonyms, rng) for word in words)
        chosen[WORD] = [feature for feature in given if feature is not None]
        if drawn:
            chosen[DRAWN_WORD] = _drawn(texts, sources.synonyms, generator(*address, "drawn"))
    if sources.pair is not None:
        short = _most_salient(texts, pairs, classifier, reader, lambda node: len(node) <= FEW)
        long = [(example, text, node) for example, text in texts if (node := text.tree.longest()) is not None]
        chosen |= {SHORT: _translated(short, sources.pair), LONG: _translated(long, sources.pair)}
    return {level: of for level, of in chosen.items() if len(of) >= LEAST}


def _reworded(example, text, node, synonyms, rng) -> Feature | None:
    """A word with one of its synonyms in its place; None where it has none."""
    labelled, word = text.tree.labelled, text.part(node)
    tag = node.label if labelled else synonyms.tag(word)
    options = synonyms.of(word, tag)
    new = options[int(rng.integers(len(options)))] if options else None
    return None if new is None else Feature(example, text, node, new, None if labelled else tag)


def _drawn(texts, synonyms, rng) -> list[Feature]:
    """Of each text that has such a word, one that has synonyms, whatever a classifier minds."""
    features = []
    for example, text in texts:
        words = [node for node in text.tree.candidates if len(node) == 1]
        reworded = (_reworded(example, text, words[at], synonyms, rng) for at in rng.permutation(len(words)))
        if (feature := next(filter(None, reworded), None)) is not None:
            features.append(feature)
    return features


def _most_salient(texts, pairs, classifier, reader, allowed):
    """(example, text, node): of each text the candidate whose hiding takes the most from the predicted label."""
    nodes = [[node for node in text.tree.candidates if allowed(node)] for _, text in texts]
    spans = [reader.spans(text, of) if of else [] for (_, text), of in zip(texts, nodes, strict=True)]
    scores = saliency(classifier, pairs, spans, reader.longest, reader.device)
    return [
        (example, text, of[int(given.argmin())])
        for (example, text), of, given in zip(texts, nodes, scores, strict=True)
        if of
    ]


def _translated(chosen, pair) -> list[Feature]:
    before = [text.text[: text.place(node)[0]] for _, text, node in chosen]
    new = paraphrases(*pair, before, [text.part(node) for _, text, node in chosen])
    return [Feature(*one, text) for one, text in zip(chosen, new, strict=True) if text is not None]


def _ways(level, probe) -> dict:
    """What a level of words or phrases is called by how it is asked -> (feature, new) -> pairs of queries."""
    return {level: by_template} | ({in_text(level): in_its_text} if probe.in_text else {})


def _distances(model, queries, reader, among=None):
    rows = query_ids(reader.tokenizer, [query for pair in queries for query in pair], reader.longest)
    return template_distances(model, list(zip(rows[0::2], rows[1::2], strict=True)), reader.device, among)


def _means(model, features, words, how, reader) -> np.ndarray:
    """Mean distance over the pairs of queries of each feature and of the words in its place, [N]."""
    queries = [how(feature, new) for feature, new in zip(features, words, strict=True)]
    counts = np.array([len(of) for of in queries])
    given = _distances(model, [pair for of in queries for pair in of], reader)
    return np.add.reduceat(given, np.cumsum(counts) - counts) / counts


def nuisances(features, reader) -> np.ndarray:
    """The form of words, with which distances go even of initial weights, [N, 11]: of how many words and tokens the
    text is, as logarithm and inverse, of how many tokens the word and its synonym are, whether of as many, what
    spelling they share, and the part of speech, which decides about the query.
    """
    words = [len(feature.text.tree.words) for feature in features]
    texts = (
        [feature.text.text for feature in features],
        *zip(*((f" {f.old}", f" {f.new}") for f in features), strict=True),
    )
    tokens, old, new = (np.array([*map(len, content_ids(reader.tokenizer, [*of]))]) for of in texts)
    lengths = np.array([words, tokens], np.float64)
    spelt = spelling(features, reader.tokenizer)
    shared = np.transpose([spelt.shared(feature.old, feature.new) for feature in features])
    kinds = [[feature.category == kind for feature in features] for kind in (NOUN, VERB)]
    return np.stack([*np.log(lengths), *(1 / lengths), old, new, old != new, *shared, *kinds], 1)


def measured_before(model, chosen, reader, probe, answers, seed) -> dict[str, Asked]:
    """Level -> what the pre-trained model predicts of its features; seed: of initial weights."""
    levels, untrained = {}, initial(model, seed) if probe.in_text else None
    for level, own in chosen.items():
        new = [feature.new for feature in own]
        fixed = nuisances(own, reader) if probe.in_text and level in WORDS else None
        for asked, how in _ways(level, probe).items():
            levels[asked] = whole = Asked(own, _means(model, own, new, how, reader))
            if fixed is None:
                continue
            levels[held_fixed(asked)] = replace(whole, fixed=fixed)
            levels[untaught(asked)] = by_chance = Asked(own, _means(untrained, own, new, how, reader))
            levels[untaught(held_fixed(asked))] = replace(by_chance, fixed=fixed)
    if long := chosen.get(LONG):
        for level, kind in ((WITH, "with"), (MEANS, "means")):
            queries = [[sentence_query(kind, texts[f.text.side]) for texts in (f.example.texts, f.texts)] for f in long]
            levels[level] = Asked(long, _distances(model, queries, reader))
        if answers is not None:
            queries = [[filled(probe.query, *texts) for texts in (f.example.texts, f.texts)] for f in long]
            levels[EXAMPLE] = Asked(long, _distances(model, queries, reader, answers))
    return levels


def told(model, chosen, levels, reader, probe, address, texts, **columns) -> list[dict]:
    """Rows and items `told` of the levels of words: 1 where the synonym lies nearer than another word, 1/2 where both
    lie as near. levels: as `measured_before` gives them, which has the distances of synonyms."""
    rows = []
    for level in WORDS:
        own = chosen.get(level, [])
        words = others(own, reader.tokenizer, generator(*address, level))
        there = [row for row, word in enumerate(words) if word is not None]
        if len(there) < LEAST:
            continue
        features, words = [own[row] for row in there], [words[row] for row in there]
        for asked, how in _ways(level, probe).items():
            farther = np.round(_means(model, features, words, how, reader) - levels[asked].before[there], 6)
            found = of_items((1 + np.sign(farther)) / 2, TOLD, split=split(asked, TOLD), **columns)
            rows += texts.placed(found, features)
    return rows
