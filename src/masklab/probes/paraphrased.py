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
correlations of what is left of the distances after least squares on `asked.nuisances`. And each of these levels once
more with the distances of initial weights in the place of the model's (`models.initial`), of the same words: what goes
with these as much needs no pre-training. None of this is in the paper.

Nor is the null of each level (`phrases.fresh`): the changes are those of a classifier that was fine-tuned from initial
weights, on the largest size, of its own most salient features and of the same drawn words; the distances before
fine-tuning are still those of the pre-trained model. A correlation that this classifier has as well is no sign that
anything of pre-training is left in the other. Its accuracy is a row, too, whose split is that of `test`. Initial
weights themselves have no such null.

Items are in the order of the texts, NaN where a text has no such feature: most salient words are of other texts for
every classifier, and test sets are drawn again text by text.
"""

from functools import partial
from pathlib import Path

import numpy as np

from masklab.config.adopted import found
from masklab.config.sources import expand
from masklab.errors import MaskLabError
from masklab.files import sha256
from masklab.jobs.provenance import input_mark
from masklab.models.checkpoint import load_checkpoint
from masklab.models.initial import initial, is_initial
from masklab.phrases import (
    COURSE,
    REPLACED,
    TOLD,
    WORDS,
    fresh,
    is_held_fixed,
    is_untaught,
    split,
)
from masklab.phrases.asked import Asked, means, measured_before, ways
from masklab.phrases.examples import Feature, read_examples
from masklab.phrases.others import others
from masklab.phrases.parses import keyed, read_trees
from masklab.phrases.queries import verbaliser_ids
from masklab.phrases.reader import Reader
from masklab.phrases.replacing import LEAST, Sources, features
from masklab.probes.outcomes import of_classes, of_items
from masklab.probes.replacement import classifiers, correlated, never_pretrained, of_all_seeds
from masklab.rng import generator
from masklab.tasks.encoding import encode_split
from masklab.tokenizers import load_tokenizer
from masklab.wordnet import place_of

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
    return of_all_seeds(context, tasks, partial(_measured, context, tokenizer, sources), marks)


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


def _measured(context, tokenizer, sources, name, folder, facts, answers, examples, seed, tell):
    probe, device = context.probe, context.device
    model = load_checkpoint(context.checkpoint, device).eval()
    longest = min(probe.max_length, model.config.max_positions)
    splits = [encode_split(folder / f"{part}.parquet", tokenizer, longest, device) for part in ("train", "valid")]
    test = Measured(
        context, name, facts["labels"], model, Reader(tokenizer, longest, device), sources, answers, examples
    )
    sizes, rows, levels = context.training_sizes(name), [], None
    alone = is_initial(context.checkpoint)  # nothing is before these weights
    share = sum(sizes) / (sum(sizes) + (0 if alone else max(sizes)))  # of all fine-tuning; the rest: initial weights
    for size, updates, classifier in classifiers(context, name, facts, splits, seed, lambda done: tell(share * done)):
        columns = {"task": name, "train_size": size, "seed": seed}
        if first := levels is None:
            chosen = test.features_of(classifier)
            levels = test.before(chosen, initial(model, context.seed) if probe.in_text else None)
            if probe.in_text:
                address = context.seed, context.name, "others", name
                rows += told(model, chosen, levels, test.reader, probe, address, test.texts, **columns)
        if updates is None:
            rows += test.accuracies(classifier, "test", columns)
            rows += test.correlations(classifier, levels, str, columns, shown=first)
        else:  # items have no `at`
            found = test.correlations(classifier, levels, lambda level: split(level, COURSE), columns)
            rows += [row | {"at": float(updates)} for row in found if "predictions" not in row]
    if alone:
        return rows

    def told_of_initial(done):
        tell(share + (1 - share) * done)

    size, classifier = never_pretrained(context, model, name, facts, splits, seed, told_of_initial)
    columns = {"task": name, "train_size": size, "seed": seed}
    levels = test.before(test.features_of(classifier))
    return (
        rows
        + test.accuracies(classifier, fresh("test"), columns)
        + test.correlations(classifier, levels, fresh, columns)
    )


class Measured:
    """A pre-trained model and the test examples of a task: what is measured of each classifier.

    answers: ids of the verbalisers, or None.
    """

    def __init__(self, context, name, classes, model, reader, sources, answers, examples):
        self.context, self.name, self.classes, self.model = context, name, classes, model
        self.reader, self.sources, self.answers = reader, sources, answers
        self.examples, self.texts = examples, Texts(examples)

    def features_of(self, classifier) -> dict[str, list[Feature]]:
        """Level -> the features that are replaced, the most salient ones to this classifier."""
        address = self.context.seed, self.context.name, self.name
        return features(self.examples, classifier, self.reader, self.sources, address, self.context.probe.drawn)

    def before(self, chosen, untrained=None) -> dict[str, Asked]:
        """See `measured_before`."""
        return measured_before(self.model, chosen, self.reader, self.context.probe, self.answers, untrained)

    def accuracies(self, classifier, called: str, columns) -> list[dict]:
        """Rows of the classifier's answers to the examples; called: their split."""
        given = self.reader.answers(classifier, [example.texts for example in self.examples]).argmax(1)
        labels = np.array([example.label for example in self.examples])
        return of_classes(labels, given, self.classes, split=called, **columns)

    def correlations(self, classifier, levels, called, columns, shown=False) -> list[dict]:
        """Rows and items of the classifier at all levels; called: level -> split; shown: first replacements, too."""
        rows, changes = [], {}
        for level, asked in levels.items():
            own = asked.features
            if id(own) not in changes:
                changes[id(own)] = self.reader.changes(classifier, own)
            after, address = changes[id(own)], (self.context.seed, self.context.name, "features", level)
            found = correlated(*asked.left(asked.before, after), address, **columns, split=called(level))
            rows += self.texts.placed(found, own)
            if shown and not (is_held_fixed(level) or is_untaught(level)):
                rows += [
                    {**columns, "split": split(level, REPLACED), "metric": feature.shown(), "value": value, "n": at}
                    for at, (feature, value) in enumerate(zip(own[:SHOWN], after.tolist(), strict=False), 1)
                ]
        return rows


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
        for asked, how in ways(level, probe).items():
            farther = np.round(means(model, features, words, how, reader) - levels[asked].before[there], 6)
            found = of_items((1 + np.sign(farther)) / 2, TOLD, split=split(asked, TOLD), **columns)
            rows += texts.placed(found, features)
    return rows
