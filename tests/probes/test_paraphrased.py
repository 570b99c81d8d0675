"""Paraphrases on text: real parses, a real WordNet and real translation models, all of them tiny and made here."""

import itertools
import os
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

import checked_run
import small_translation
import small_wordnet
from checked_run import run
from masklab import probes
from masklab.config.schema import Encoder, ParaphrasedProbe
from masklab.errors import MaskLabError
from masklab.files import read_table, write_json
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.phrases import (
    COURSE,
    DRAWN_WORD,
    EXAMPLE,
    LEVELS,
    LONG,
    MEANS,
    SHORT,
    TOLD,
    WITH,
    WORD,
    fresh,
    held_fixed,
    in_text,
    replacing,
    split,
    untaught,
)
from masklab.phrases.distances import total_variation
from masklab.phrases.examples import Feature, Text, read_examples
from masklab.phrases.parses import key_of, keyed, parse, places, read_trees
from masklab.phrases.reader import Reader
from masklab.probes import Context, paraphrased
from masklab.rng import torch_generator
from masklab.tasks.encoding import content_ids
from masklab.tokenizers import CLS, MASK, SEP, SPECIALS, load_tokenizer

NOUNS, VERBS, ADJECTIVES = ("cat", "dog", "bird", "horse"), ("see", "follow", "like", "carry"), ("old", "small")


def sentence(rng):
    """(text, its parse, label): label 1 of plural subjects."""
    plural, (one, two) = int(rng.integers(2)), rng.choice(NOUNS, 2)
    adjective, verb = rng.choice(ADJECTIVES), rng.choice(VERBS)
    subject, tag = (f"{one}s", "NNS") if plural else (one, "NN")
    verb, does = (verb, "VBP") if plural else (f"{verb}s", "VBZ")
    noun = f"(NP (DT The) (JJ {adjective}) ({tag} {subject}))"
    parse = f"(ROOT (S {noun} (VP ({does} {verb}) (NP (DT the) (NN {two}))) (. .)))"
    return f"The {adjective} {subject} {verb} the {two}.", parse, plural


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of a task, its parses, a WordNet and two translation models."""
    root, rng = tmp_path_factory.mktemp("paraphrased"), np.random.default_rng(1)
    parses = []
    (root / "t").mkdir()
    for name, count in (("train", 60), ("valid", 20), ("test", 30)):
        rows = [sentence(rng) for _ in range(count)]
        frame = pd.DataFrame({"text_a": [text for text, _, _ in rows], "text_b": None, "label": [r[2] for r in rows]})
        frame.to_parquet(root / "t" / f"{name}.parquet")
        parses = [parse for _, parse, _ in rows]
    (root / "parses.txt").write_text("\n".join(parses[5:]) + "\n")  # the first five have none
    write_json({"kind": "labels", "labels": 2, "pair": False, "metric": "accuracy"}, root / "t" / "task.json")
    senses = [("n", "cat dog bird horse child"), ("v", "see follow"), ("v", "like carry"), ("a", "old small")]
    small_wordnet.write(root / "nltk", senses)
    plurals = [f"{noun}s" for noun in NOUNS] + [f"{verb}s" for verb in VERBS]
    words = ["The", "the", ".", *NOUNS, *plurals, *VERBS, *ADJECTIVES]
    for seed, name in enumerate(("there", "back"), 1):
        small_translation.save(root / name, words, seed)
    return root


def items(rows):
    """Records, of the items that were measured."""
    return [
        record | {name: [value for value in record[name] if value == value] for name in ("targets", "predictions")}
        for record in checked_run.items(rows)
    ]


@pytest.fixture(scope="module", autouse=True)
def brief():
    """A random model knows no end: few words, so that queries of whole sentences are not cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("masklab.phrases.translation.MOST", 9)
        yield


@pytest.fixture(scope="module")
def given(world, tokenizer_folder):
    config = Encoder(
        positions="disentangled", layers=2, hidden=32, heads=2, intermediate=64, max_positions=128, init_range=0.15
    )
    size = load_tokenizer(tokenizer_folder).get_vocab_size()
    model = MaskedLM(config, size, generator=torch.Generator().manual_seed(0))
    save_checkpoint(model, world / "model" / "step-1", tokenizer_folder=tokenizer_folder, metadata={})

    def make(**changes):
        settings = {
            "kind": "paraphrased", "tasks": ["t"], "seeds": [1], "sizes": [20, 60], "lr": 3e-3, "batch_size": 20,
            "select": "accuracy", "evaluate_every": "epoch", "patience": 30, "epochs": 8, "updates": [2],
            "parses": [str(world / "parses.txt")], "wordnet": str(world / "nltk"), "examples": 12,
            "there": str(world / "there"), "back": str(world / "back"), "verbalisers": ["cat", "dog"],
        }  # fmt: skip
        probe = ParaphrasedProbe(**(settings | changes))
        return Context(probe, world / "model" / "step-1", {"t": world / "t"}, name="p")

    return make


@pytest.fixture(scope="module")
def rows(given):
    return probes.run(given())


def test_every_level_is_measured_at_every_size_and_update(rows):
    assert {row["split"] for row in rows if row.get("metric") == "pearson"} == {
        each for level in LEVELS for each in (level, split(level, COURSE), fresh(level))
    }
    for level in LEVELS:
        for size in (20, 60):
            own = [row for row in rows if row["train_size"] == size and row.get("metric") == "pearson"]
            assert [row.get("at") for row in own if row["split"] == split(level, COURSE)] == [2.0]
    records = {(row["split"], row["train_size"]): row for row in items(rows)}
    # a sentence and an example are those of the longest phrase: the same change of the prediction
    assert records[LONG, 60]["predictions"] == records[EXAMPLE, 60]["predictions"]
    assert records[LONG, 60]["targets"] != records[EXAMPLE, 60]["targets"]
    assert records[WORD, 60]["targets"] == records[WORD, 20]["targets"]  # the same replacements at all sizes
    assert records[WORD, 60]["predictions"] != records[WORD, 20]["predictions"]
    assert all(row["n"] <= 12 for row in rows if row.get("metric") == "pearson")


@pytest.mark.parametrize("labelled", (True, False))
def test_distances_of_words_are_those_of_the_paper_s_queries(labelled, world, given, rows, tmp_path):
    """Every word that is shown, asked by itself: by its part of speech, which WordNet says where the parse does not."""
    context = given()
    model, tokenizer = load_checkpoint(context.checkpoint).eval(), load_tokenizer(context.checkpoint)
    if not labelled:  # as the Stanford Sentiment Treebank has it
        bare = re.sub(r"\((\S+) ", "(2 ", (world / "parses.txt").read_text())
        (tmp_path / "parses.txt").write_text(bare)
        rows = probes.run(given(parses=[str(tmp_path / "parses.txt")], there=None, back=None, verbalisers=None))

    def predicted(feature, verb, adjective):
        (own,) = content_ids(tokenizer, [f"is {feature}" if adjective else feature])
        ids = [CLS, MASK, *own, SEP] if verb or adjective else [CLS, *own, MASK, SEP]
        logits = model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[ids.index(MASK)]
        return logits.detach().double().softmax(-1).numpy()

    (record,) = [row for row in items(rows) if row["split"] == WORD and row["train_size"] == 60]
    shown = [row for row in rows if row["split"] == split(WORD, "replaced")]
    assert len(shown) == 5
    kinds = set()
    for row in shown:
        before, _, rest = row["metric"].partition(" [")
        old, new = before.split(" ")[-1], rest.partition("]")[0]
        kind = {"verb": old.rstrip("s") in VERBS, "adjective": old in ADJECTIVES}
        kinds.add(tuple(kind.values()))
        distance = total_variation(predicted(old, **kind), predicted(new, **kind))
        assert record["targets"][row["n"] - 1] == pytest.approx(float(distance), abs=2e-6)
        assert record["predictions"][row["n"] - 1] == pytest.approx(row["value"], abs=1e-5)
        assert old.endswith("s") == new.endswith("s")  # of one inflection
    assert len(kinds) > 1, "more than nouns"


def test_drawn_words_are_the_same_for_every_classifier(world, given):
    """Of each text one that has a synonym, by chance: two classifiers, which mind other words, share all of them."""
    words = {"there": None, "back": None, "verbalisers": None, "sizes": [60]}
    replaced = {}
    for lr in (3e-3, 1e-4):
        rows = probes.run(given(drawn=True, lr=lr, **words))
        for level in (WORD, DRAWN_WORD):
            replaced[lr, level] = [row["metric"] for row in rows if row["split"] == split(level, "replaced")]
        (record,) = [row for row in items(rows) if row["split"] == DRAWN_WORD]
        replaced[lr, "before"] = record["targets"]
    assert replaced[3e-3, DRAWN_WORD] == replaced[1e-4, DRAWN_WORD] and len(replaced[3e-3, DRAWN_WORD]) == 5
    assert replaced[3e-3, "before"] == replaced[1e-4, "before"], "of the pre-trained model, which is one"
    assert replaced[3e-3, WORD] != replaced[1e-4, WORD] and replaced[3e-3, WORD] != replaced[3e-3, DRAWN_WORD]
    places = {shown.partition(" [")[0].count(" ") for shown in replaced[3e-3, DRAWN_WORD]}
    assert len(places) > 1, "not always the first word, say"


def test_distances_in_the_text_itself_are_means_over_the_words_beside_a_feature(given):
    """Asked one by one; all else is as it is without `in_text`."""
    context = given(in_text=True, drawn=True)
    model, tokenizer = load_checkpoint(context.checkpoint).eval(), load_tokenizer(context.checkpoint)
    asked = probes.run(context)
    plain = probes.run(given(drawn=True))
    more = in_text(""), held_fixed(""), untaught(""), split("", TOLD)
    own = [row for row in asked if not any(part in row["split"] for part in more)]
    words = [way for level in (WORD, DRAWN_WORD) for way in (level, in_text(level))]
    assert [row for row in own if "value" in row] == [row for row in plain if "value" in row]
    assert items(own) == items(plain)
    levels = {*LEVELS, *words, in_text(SHORT), in_text(LONG), *map(held_fixed, words)}
    of_others = {untaught(level) for level in (*words, *map(held_fixed, words))}
    assert {row["split"] for row in asked if row.get("metric") == "pearson"} == {
        *(each for level in levels | of_others for each in (level, split(level, COURSE))), *map(fresh, levels)
    }  # fmt: skip
    drawn = MaskedLM(model.config, model.vocab_size, generator=torch_generator(context.seed, "initial weights")).eval()

    def predicted(before, after, model=model):
        first, second = (content_ids(tokenizer, [text])[0] for text in (before, f"dog {after}"))
        second = second[len(content_ids(tokenizer, ["dog"])[0]) :]
        ids = [CLS, *first, MASK, *second, SEP]
        logits = model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[ids.index(MASK)]
        return logits.detach().double().softmax(-1).numpy()

    targets = {row["split"]: row["targets"] for row in items(asked) if row["train_size"] == 60}
    checked = 0
    for row in [row for row in asked if row["split"] == split(WORD, "replaced")]:
        before, _, rest = row["metric"].partition(" [")
        new, _, after = rest.partition("]")
        (*words, old), behind = before.split(" "), after.split(" ")[1:]
        if not words or len(behind) < 2:  # the last word has a full stop at its end
            continue
        left = [predicted(" ".join(words[:-1]), " ".join([word, *behind])) for word in (old, new)]
        right = [predicted(" ".join([*words, word]), " ".join(behind[1:])) for word in (old, new)]
        wanted = np.mean([total_variation(*left), total_variation(*right)])
        assert targets[in_text(WORD)][row["n"] - 1] == pytest.approx(wanted, abs=2e-6)
        left = [predicted(" ".join(words[:-1]), " ".join([word, *behind]), drawn) for word in (old, new)]
        right = [predicted(" ".join([*words, word]), " ".join(behind[1:]), drawn) for word in (old, new)]
        by_chance = np.mean([total_variation(*left), total_variation(*right)])
        assert targets[untaught(in_text(WORD))][row["n"] - 1] == pytest.approx(by_chance, abs=2e-6)
        assert abs(by_chance - wanted) > 1e-3
        checked += 1
    assert checked >= 2


def test_the_null_is_a_classifier_of_initial_weights_with_the_distances_of_the_pre_trained_model(given, tmp_path):
    """Its accuracy and its changes are those that the probe has of a checkpoint of these weights."""
    context = given(in_text=True, drawn=True)
    rows, model = probes.run(context), load_checkpoint(context.checkpoint)
    drawn = MaskedLM(model.config, model.vocab_size, generator=torch_generator(context.seed, "initial weights"))
    save_checkpoint(drawn, tmp_path / "step-0", tokenizer_folder=context.checkpoint, metadata={})
    alone = probes.run(replace(context, checkpoint=tmp_path / "step-0"))
    record = {"step": 0, "config": {"model": {"folder": None, "init": None, "embeddings": None}}}
    write_json(record, tmp_path / "step-0" / "masklab.json")
    told = []
    known = probes.run(replace(context, checkpoint=tmp_path / "step-0", progress=lambda *said: told.append(said[0])))
    assert not any(row["split"].endswith(fresh("")) for row in known)
    assert told == sorted(told) and told[-1] == 1 and any(0.8 < share < 1 for share in told)
    own = [row for row in alone if not row["split"].endswith(fresh(""))]
    assert [row for row in known if "value" in row] == [row for row in own if "value" in row]

    def by_split(rows):
        return {row["split"]: row for row in checked_run.items(rows) if row["train_size"] == 60}

    own, null = by_split(rows), by_split(alone)
    nulls = [level.removesuffix(fresh("")) for level in own if level.endswith(fresh("")) and level != fresh("test")]
    assert len(nulls) == len([*LEVELS]) + 1 + 4 + 4  # drawn words; four levels in the text; four held fixed
    for level in nulls:
        assert own[fresh(level)]["predictions"] == pytest.approx(null[level]["predictions"], abs=1e-6, nan_ok=True)
        assert own[fresh(level)]["predictions"] != pytest.approx(own[level]["predictions"], abs=1e-4, nan_ok=True)
    for level in (DRAWN_WORD, in_text(DRAWN_WORD), LONG, EXAMPLE):  # the same features for every classifier
        assert own[fresh(level)]["targets"] == pytest.approx(own[level]["targets"], abs=1e-6, nan_ok=True)
        assert own[fresh(level)]["targets"] != pytest.approx(null[level]["targets"], abs=1e-4, nan_ok=True)
    accuracies = [
        [row["value"] for row in of if (row["split"], row.get("metric"), row["train_size"]) == (at, "accuracy", 60)]
        for of, at in ((rows, fresh("test")), (alone, "test"))
    ]
    assert accuracies[0] == accuracies[1] and len(accuracies[0]) == 1


def test_items_are_texts_whatever_classifiers_mind(given, tmp_path):
    """In order, those whose most salient word has no synonym among them, which are others for every classifier."""
    small_wordnet.write(tmp_path, [("v", "see follow"), ("v", "like carry"), ("a", "old small")])
    words = {"sizes": [60], "examples": 25, "there": None, "back": None, "verbalisers": None, "wordnet": str(tmp_path)}
    found = []
    for lr in (3e-3, 1e-4):
        rows = probes.run(given(lr=lr, **words))
        (record,) = [row for row in checked_run.items(rows) if row["split"] == WORD]
        (count,) = [row["n"] for row in rows if row["split"] == WORD and row.get("metric") == "pearson"]
        places = np.isfinite(record["targets"])
        assert len(places) == 25 and places.sum() == count < 25
        assert np.array_equal(places, np.isfinite(record["predictions"]))
        found.append(places)
    assert not np.array_equal(*found)


def test_the_form_of_words_is_held_fixed(given, monkeypatch):
    """The partial correlation by its closed form, of words and tokens counted by hand."""
    words, features = [], paraphrased.features
    monkeypatch.setattr(paraphrased, "features", lambda *args: words.append(features(*args)) or words[0])
    context = given(in_text=True, drawn=True, there=None, back=None, verbalisers=None, sizes=[60], examples=30)
    rows = probes.run(context)
    tokenizer = load_tokenizer(context.checkpoint)
    records = {row["split"]: row for row in items(rows)}
    for level, way in itertools.product((WORD, DRAWN_WORD), (str, in_text)):
        lengths, pieces, alike, kinds = [], [], [], []
        for feature in words[0][level]:
            text, (old, new) = feature.text.text, (feature.old, feature.new)
            tokens = [content_ids(tokenizer, [f" {word}"])[0] for word in (old, new)]
            lengths.append((len(re.findall(r"\w+|\.", text)), len(content_ids(tokenizer, [text])[0])))
            pieces.append([len(tokens[0]), len(tokens[1]), len(tokens[0]) != len(tokens[1])])
            kinds.append([feature.category == "noun", feature.category == "verb"])
            alike.append([len({*tokens[0]} & {*tokens[1]}), old[:4] == new[:4]])
        lengths = np.array(lengths, float).T
        whole, held = records[way(level)], records[held_fixed(way(level))]
        columns = [
            whole["targets"],
            whole["predictions"],
            *np.log(lengths),
            *(1 / lengths),
            *np.transpose(pieces),
            *np.transpose(kinds),
            *np.transpose(alike),
        ]
        before, after, *fixed = np.array([np.asarray(column, float) for column in columns])
        fixed = np.stack([np.ones(len(alike)), *fixed], 1)
        left = [of - fixed @ (np.linalg.pinv(fixed) @ of) for of in (before, after)]
        partial = np.dot(*left) / np.sqrt(np.dot(left[0], left[0]) * np.dot(left[1], left[1]))
        assert np.corrcoef(held["targets"], held["predictions"])[0, 1] == pytest.approx(partial, abs=1e-3)
        (row,) = [r for r in rows if r["split"] == held_fixed(way(level)) and r.get("metric") == "pearson"]
        assert row["value"] == pytest.approx(partial, abs=1e-3) and row["n"] == len(alike)
        assert abs(partial - np.corrcoef(whole["targets"], whole["predictions"])[0, 1]) > 0.01


def test_told_says_how_often_a_synonym_lies_nearer_than_another_word(given, monkeypatch):
    """Every word's distance by hand, to its synonym and to what is drawn in its place."""
    drawn, asked, draw, read, reading = [], [], paraphrased.others, [], paraphrased.read_examples
    monkeypatch.setattr(paraphrased, "read_examples", lambda *args: read.extend(reading(*args)) or read)
    monkeypatch.setattr(paraphrased, "others", lambda *args: drawn.append((args[0], draw(*args))) or drawn[-1][1])
    context = given(in_text=True, drawn=True, there=None, back=None, verbalisers=None, sizes=[60], examples=30)
    rows = probes.run(context)
    model, tokenizer = load_checkpoint(context.checkpoint).eval(), load_tokenizer(context.checkpoint)
    for level, (features, words) in zip((WORD, DRAWN_WORD), drawn, strict=True):
        nearer = []
        for feature, word in zip(features, words, strict=True):
            if word is None:
                continue
            distances = []
            for new in (feature.new, word):
                noun, (first,), (second,) = (
                    feature.category == "noun",
                    *(
                        content_ids(tokenizer, [f"is {text}" if feature.category == "adjective" else text])
                        for text in (feature.old, new)
                    ),
                )
                given_ = []
                for own in (first, second):
                    ids = [CLS, *own, MASK, SEP] if noun else [CLS, MASK, *own, SEP]
                    logits = model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[ids.index(MASK)]
                    given_.append(logits.detach().double().softmax(-1).numpy())
                distances.append(round(float(total_variation(*given_)), 6))
            nearer.append((1 + np.sign(distances[1] - distances[0])) / 2)
        (row,) = [row for row in rows if row["split"] == split(level, TOLD) and "value" in row]
        assert row["metric"] == TOLD and row["n"] == len(nearer) >= 3 and row["value"] == np.mean(nearer)
        (record,) = [row for row in checked_run.items(rows) if row["split"] == split(level, TOLD)]
        texts = {id(example.parsed[0]): at for at, example in enumerate(read)}
        places = [texts[id(of.text)] for of, word in zip(features, words, strict=True) if word is not None]
        assert [record["predictions"][at] for at in places] == nearer
        assert np.isfinite(record["predictions"]).sum() == len(places)
        assert row["train_size"] == 60
        asked.append(row["value"])
    told = {row["split"] for row in rows if row.get("metric") == TOLD}
    assert told == {split(each, TOLD) for level in (WORD, DRAWN_WORD) for each in (level, in_text(level))}


def test_distances_of_sentences_are_of_the_text_with_the_longest_phrase_replaced(world, given, rows):
    context = given()
    model, tokenizer = load_checkpoint(context.checkpoint).eval(), load_tokenizer(context.checkpoint)
    trees = {key_of(" ".join(tree.words)): tree for tree in read_trees(world / "parses.txt")}

    def predicted(query):
        texts = query.split("[MASK]")[0].strip(), "dog", query.replace("[MASK]", "dog")
        before, word, whole = content_ids(tokenizer, texts)  # cut as around a word
        assert whole[: len(before) + len(word)] == before + word
        ids = [CLS, *before, MASK, *whole[len(before) + len(word) :], SEP]
        logits = model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[ids.index(MASK)]
        return logits.detach().double().softmax(-1).numpy()

    targets = {row["split"]: row["targets"] for row in items(rows) if row["train_size"] == 60}
    shown = [row for row in rows if row["split"] == split(LONG, "replaced")]
    assert shown
    for row in shown:
        before, _, rest = row["metric"].partition(" [")
        new, _, after = rest.partition("]")
        tree = trees[key_of(before + after)]
        node = tree.longest()
        old = " ".join(tree.words[node.begin : node.end])
        texts = before + after, before.removesuffix(old) + new + after
        for level, query in ((WITH, "{} with [MASK]."), (MEANS, '"{}" means [MASK]')):
            asked = [query.format(text.rstrip(" .") if level == WITH else text) for text in texts]
            distance = float(total_variation(*map(predicted, asked)))
            assert targets[level][row["n"] - 1] == pytest.approx(distance, abs=2e-6)
            assert distance > 1e-4


def test_short_phrases_are_of_up_to_four_words_and_are_translated_after_what_stands_before_them(
    given, tmp_path, monkeypatch
):
    """Of three texts, as few as a correlation can be of: their subjects have three, four and five words."""
    subjects = ["The old cat", "The old small cat", "The small old small cat"]
    texts = [f"{subject} sees the dog." for subject in subjects]
    nouns = [f"(NP {' '.join(f'(JJ {word})' for word in subject.split()[:-1])} (NN cat))" for subject in subjects]
    trees = [f"(S {of} (VP (VBZ sees) (NP (DT the) (NN dog))) (. .))" for of in nouns]
    (tmp_path / "parses.txt").write_text("\n".join(trees))
    rows, folder = pd.DataFrame({"text_a": texts, "text_b": None, "label": [0, 1, 1]}), tmp_path / "t"
    folder.mkdir()
    for part in ("train", "valid", "test"):
        rows.to_parquet(folder / f"{part}.parquet")
    write_json({"kind": "labels", "labels": 2, "pair": False, "metric": "accuracy"}, folder / "task.json")
    translated, translate = [], replacing.paraphrases

    def watched(there, back, before, phrases):
        translated.append((before, phrases))
        return translate(there, back, before, phrases)

    monkeypatch.setattr(replacing, "paraphrases", watched)
    monkeypatch.setattr(replacing, "_most_salient", longest_of(replacing._most_salient))
    context = given(parses=[str(tmp_path / "parses.txt")], sizes=[3], updates=[], examples=3, wordnet=None, epochs=1)
    measured = probes.run(replace(context, tasks={"t": folder}))
    short, long, *more = translated
    assert short == (["", "", f"{subjects[2]} "], [*subjects[:2], "sees the dog"])
    assert long == ([""], subjects[2:])  # the others are known
    assert not more  # though the null chooses too
    assert {SHORT, LONG} <= {row["split"] for row in measured}


def longest_of(choose):
    """As if the longest of the candidates were the most salient."""

    def chosen(texts, pairs, classifier, reader, allowed):
        found = choose(texts, pairs, classifier, reader, allowed)
        return [(example, text, max(filter(allowed, text.tree.candidates), key=len)) for example, text, _ in found]

    return chosen


def test_examples_are_the_first_that_have_a_parse(world):
    trees = keyed(read_trees(world / "parses.txt"))
    texts = read_table(world / "t" / "test.parquet")["text_a"].to_pylist()
    examples = read_examples(world / "t" / "test.parquet", trees, 6)
    parsed = [text for text in texts if key_of(text) in trees]
    assert [example.texts[0] for example in examples] == parsed[:6]
    text = examples[0].parsed[0]
    assert text.part(text.tree.longest()).startswith("The ")  # the first of two of three words
    verb = next(node for node in text.tree.candidates if node.label == "VP")
    feature = Feature(examples[0], text, verb, "is warm")
    begin = text.text.index(feature.old)
    assert feature.texts == (text.text[:begin] + "is warm.", None) and feature.category == "verb"
    assert feature.shown() == f"{text.text[:-1]} [is warm]."
    with pytest.raises(MaskLabError, match="none of its 30 examples has a parse among the 0 read"):
        read_examples(world / "t" / "test.parquet", {}, 6)


def test_a_word_lies_in_the_token_that_goes_on_behind_it():
    """As where a full stop is of one piece with the word before it: else nothing would be hidden of the word."""
    pieces = [*SPECIALS, "▁The", "▁dog", "▁sees", "▁a", "▁cat.", "▁can", "not"]
    tokenizer = Tokenizer(models.Unigram([(piece, 0.0) for piece in pieces], 2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    for text, tree, wanted in (
        ("The dog sees a cat.", "(S (NP (DT The) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .))",
         {"The dog": (0, 2), "dog": (1, 2), "sees": (2, 3), "sees a cat": (2, 5), "a cat": (3, 5), "cat": (4, 5)}),
        ("The dog cannot", "(S (NP (DT The) (NN dog)) (VP (VB ca) (VB nnot)))",
         {"The dog": (0, 2), "dog": (1, 2), "ca": (2, 3), "cannot": (2, 4), "nnot": (2, 4)}),
    ):  # fmt: skip
        parsed = parse(tree)
        own = Text(0, text, parsed, places(parsed, text)[1])
        nodes = parsed.candidates
        spans = Reader(tokenizer, 64, "cpu").spans(own, nodes)
        assert {own.part(node): span[1:] for node, span in zip(nodes, spans, strict=True)} == wanted


def test_a_text_keeps_its_own_words_and_one_without_letters_finds_none(tmp_path):
    frame = pd.DataFrame({"text_a": ["Yes?", "...", "Yes."], "text_b": None, "label": [0, 1, 0]})
    frame.to_parquet(tmp_path / "test.parquet")
    trees = keyed(map(parse, ["(S (UH Yes) (. .))", "(S (UH Yes) (. ?))", "(S (: --))"]))
    assert [example.texts[0] for example in read_examples(tmp_path / "test.parquet", trees, 9)] == ["Yes?", "Yes."]


def test_resumes_with_what_was_kept(world, given, tmp_path, monkeypatch):
    parses, nltk = tmp_path / "parses.txt", tmp_path / "nltk"
    shutil.copyfile(world / "parses.txt", parses)
    shutil.copytree(world / "nltk", nltk)
    quick = {"there": None, "back": None, "sizes": [20], "updates": [], "parses": [str(parses)], "wordnet": str(nltk)}
    context = replace(given(**quick), state_folder=tmp_path / "state")
    first, measured = run(context), []
    assert first
    monkeypatch.setattr(paraphrased, "_measured", lambda *_: measured.append(1) or [])
    assert run(context) == first and not measured
    for file, more in ((parses, "(S (NN more))\n"), (nltk / "corpora" / "wordnet" / "noun.exc", "kine cow\n")):
        file.write_text(file.read_text() + more)
        probes.run(context)
        probes.run(context)
        assert len(measured) == 1, file
        measured.clear()
    probes.run(replace(context, seed=2))
    assert len(measured) == 1


@pytest.mark.parametrize("over", (0.2, 0.8))  # of the share of fine-tuning that is the model's, two thirds
def test_a_fine_tuning_that_was_killed_midway_goes_on_where_it_was(over, given, tmp_path, monkeypatch):
    """In the model's own, or in that of initial weights, after the other."""
    monkeypatch.setattr("masklab.jobs.midway.EVERY", 0.0)
    context = given(there=None, back=None, verbalisers=None, sizes=[20, 60], drawn=True)
    whole, told = probes.run(context), []

    def kill(done, total, note):
        told.append(done)
        if done > over:
            raise KeyboardInterrupt

    kept = replace(context, state_folder=tmp_path / "state")
    with pytest.raises(KeyboardInterrupt):
        probes.run(replace(kept, progress=kill))
    done, told[:] = told[-1], []
    again = probes.run(replace(kept, progress=lambda *said: told.append(said[0])))
    assert [row for row in again if "value" in row] == [row for row in whole if "value" in row]
    assert items(again) == items(whole)
    assert told == sorted(told) and next(share for share in told if share > over - 0.1) == pytest.approx(done, abs=0.05)
    assert {file.suffix for file in (tmp_path / "state").iterdir()} == {".json"}


def test_another_translation_model_is_another_mark(world, given, tmp_path, monkeypatch):
    """By its content where it is small, and by size and time where it is large."""
    shutil.copytree(world / "there", tmp_path / "there")
    probe, weights = given(there=str(tmp_path / "there")).probe, tmp_path / "there" / "model.safetensors"

    def marks():
        return paraphrased._marks(probe, [world / "parses.txt"])

    before, content = marks(), weights.read_bytes()
    (tmp_path / "there" / ".DS_Store").touch()  # macOS, of a folder that one has looked into
    assert marks() == before
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert marks() != before
    monkeypatch.setattr("masklab.jobs.provenance.SMALL", 0)
    before = marks()
    os.utime(weights, ns=(1, 1))
    assert marks() != before


def test_without_translation_words_alone_and_without_wordnet_no_words(given):
    words = run(given(there=None, back=None, updates=[], sizes=[20]))
    assert {row["split"] for row in words if row["metric"] == "pearson"} == {WORD, fresh(WORD)}
    phrases = run(given(wordnet=None, updates=[], sizes=[20], verbalisers=None))
    there = {*LEVELS} - {WORD, EXAMPLE}
    assert {row["split"] for row in phrases if row["metric"] == "pearson"} == {*there, *map(fresh, there)}
    assert {SHORT, LONG} < {row["split"] for row in phrases}


def test_a_task_of_ones_own_may_name_no_metric(world, given, tmp_path):
    """Accuracy, as of a fine-tuning."""
    shutil.copytree(world / "t", tmp_path / "t")
    write_json({"kind": "labels", "labels": 2}, tmp_path / "t" / "task.json")
    context = given(there=None, back=None, updates=[], sizes=[20], epochs=1, verbalisers=None)
    assert run(replace(context, tasks={"t": tmp_path / "t"})) == run(context)


def test_a_query_of_two_texts_of_a_task_that_does_not_say_that_it_has_one(world, given, tmp_path, monkeypatch):
    monkeypatch.setattr("masklab.probes.paraphrased.classifiers", lambda *_: pytest.fail("trained"))
    shutil.copytree(world / "t", tmp_path / "t")
    write_json({"kind": "labels", "labels": 2, "metric": "accuracy"}, tmp_path / "t" / "task.json")
    context = replace(given(query="{a} ? [MASK] , {b}"), tasks={"t": tmp_path / "t"})
    with pytest.raises(MaskLabError, match=r"^probes.p.query: \{b\} is a second text; 't' has one text a row$"):
        run(context)


def test_what_is_missing_is_said_before_any_training(given, monkeypatch):
    monkeypatch.setattr("masklab.probes.paraphrased.classifiers", lambda *_: pytest.fail("trained"))
    for changes, message in {
        (("wordnet", "nowhere"),): "nowhere: no WordNet database there",
        (("there", "nowhere"),): "'nowhere' is no folder and not in Hugging Face's cache",
        (("verbalisers", ("unheard-of", "dog")),): r"probes.p.verbalisers: 'unheard-of' is \d+ tokens",
        (("verbalisers", ("cat", "dog", "bird")),): "3 words; 't' has 2 labels",
        (("query", "{a} ? [MASK] , {b}"),): r"probes.p.query: \{b\} is a second text; 't' has one text a row",
        (("parses", ("nowhere.txt",)),): "nowhere.txt: no such file",
    }.items():
        with pytest.raises(MaskLabError, match=message) as said:
            run(given(**{key: list(value) if isinstance(value, tuple) else value for key, value in changes}))
        assert "\n" not in str(said.value)
