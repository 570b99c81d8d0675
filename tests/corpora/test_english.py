"""The generated language: grammar, sampler and recogniser against each other and against hand-made truth."""

import re
from collections import Counter

import nltk
import numpy as np
import pytest
from recogniser import read, recognises

from masklab.config.schema import EnglishCorpus
from masklab.corpora.english import generate
from masklab.corpora.english.compiler import _alternatives, compiled, is_category
from masklab.corpora.english.grammar import RULES
from masklab.corpora.english.lexicon import LEXICON
from masklab.corpora.english.sample import MAX_WORDS, phrases, sentences, word_weights
from masklab.corpora.english.spelling import write

IN_LANGUAGE = """She picked a delicious apple.
The boys near the car are tall.
The boy who saw the queens has slept.
Does the boy ever eat any apples?
No boy has ever driven any car.
Only Mary would ever drink the tea.
John had not eaten the cake yet.
What did Mary and John bake?
Which cake did the woman say that the man who slept baked?
There were two dogs in the garden.
There seems to be an elephant behind the bus.
It is clear that John slept.
John wanted to be helped by Mary.
The king forced the queen to defend herself.
Mary gave the boy an apple.
Mary gave an apple to the boy.
Peter ate one big cake and Mary ate two.
The door opened.
Did it bloom?
Did they growl?
Mary enjoyed baking the cake.
Mary remembered what the boy baked.
John opened the door.
The dog bit itself.
Was the man who was tired sleeping?
The man was eager to sleep.
The book is easy to translate.
The broken car was terrible.
When did they sleep?
Mary drank the tea before baking the cake.""".splitlines()

HAND_MADE = [(sentence, True) for sentence in IN_LANGUAGE]
HAND_MADE += [
    (sentence, False)
    for sentence in """The book was written by a poet.
If John slept.
she picked a delicious apple.
She picked an delicious apple.
She picked a apple.
She picked a delicious apple
She picked  a delicious apple.
She pick a delicious apple.
The boys near the car is tall.
The boy near the cars are tall.
The boy who saw the queens have slept.
The boy ever eats the apples.
The boy ate any apples.
Even Mary would ever drink the tea.
John had eaten the cake yet.
What did Mary bake the cake?
What did Mary bake and John?
There were most dogs in the garden.
There was every dog in the garden.
There wanted to be an elephant behind the bus.
John wanted to sleeping.
The king forced the queen to defend himself.
John helped herself.
The dogs bit itself.
Mary slept the boy.
Mary helped.
The car was slept.
Peter ate one cake and Mary ate two big.
The man was easy to sleep.
The broke car was terrible.
John has ate the cake.
John eaten the cake.
This cars stopped.
Is it cooking the orange?
He bloomed.
Mary has enjoys baking cakes.
Mary gave the boy.
Mary remembered what the boy baked the cake.
Who did the man and hug?
Those car stopped.
No boys ate at least two cakes.
Was the man who tired was sleeping?
The apple picked a delicious woman.
""".splitlines()
]


@pytest.mark.parametrize(("sentence", "expected"), HAND_MADE)
def test_hand_made_sentences(sentence, expected):
    assert recognises(sentence) is expected


def test_recogniser_accepts_what_the_sampler_draws():
    texts = sentences(2500, np.random.default_rng(0)).to_pylist()
    assert [text for text in texts if not recognises(text)] == []


def test_recogniser_rejects_shuffled_and_shortened_sentences():
    random = np.random.default_rng(1)
    accepted = 0
    texts = [text for text in sentences(400, random).to_pylist() if len(text.split()) > 6]
    for text in texts:
        words = read(text)
        body = [words[i] for i in random.permutation(len(words) - 1)]
        accepted += recognises(write([*body, words[-1]]))
    assert accepted / len(texts) < 0.02


def _nltk_accepts(sentence: str) -> bool:
    """nltk's chart parser with the productions whose words occur in the sentence."""
    words = read(sentence)
    rules = {left: [right for _, right in alternatives] for left, alternatives in compiled().items()}
    rules |= {category: [(word,) for word in entries] for category, entries in LEXICON.items()}
    useful: set[str] = set()

    def derivable(token: str, left: str) -> bool:
        return token in useful if is_category(token) and left not in LEXICON else token in words

    size = -1
    while size != len(useful):
        size = len(useful)
        useful |= {
            left for left, rights in rules.items() if any(all(derivable(t, left) for t in right) for right in rights)
        }
    productions = [
        nltk.Production(
            nltk.Nonterminal(left),
            [nltk.Nonterminal(t) if is_category(t) and left not in LEXICON else t for t in right],
        )
        for left, rights in rules.items()
        for right in rights
        if all(derivable(t, left) for t in right)
    ]
    if "Root" not in useful:
        return False
    parser = nltk.parse.BottomUpLeftCornerChartParser(nltk.CFG(nltk.Nonterminal("Root"), productions))
    return next(iter(parser.parse(words)), None) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "She picked a delicious apple.",
        "The boys near the car are tall.",
        "The boys near the car is tall.",
        "What did Mary say that John baked?",
        "No boy has ever driven any car.",
        "Even Mary would ever drink the tea.",
        "The queen helped himself.",
    ],
)
def test_recogniser_agrees_with_nltk(sentence):
    assert recognises(sentence) == _nltk_accepts(sentence)


def test_word_forms_and_lengths():
    texts = sentences(30_000, np.random.default_rng(2)).to_pylist()
    forms = {word for text in texts for word in re.findall(r"[a-z']+", text.lower())}
    assert len(forms) >= 1500
    lengths = np.array([len(text.split()) for text in texts])
    assert 8 <= lengths.mean() <= 11
    assert lengths.max() <= MAX_WORDS
    assert all(re.fullmatch(r"[A-Z][A-Za-z' ,]*[a-z][.?]", text) for text in texts)
    assert not any(re.search(r"\b[Aa] [aeiou](?!se|ni)|\b[Aa]n [^aeiouh]", text) for text in texts)


def test_food_follows_delicious():
    foods = {word for agreement in ("x", "p") for c in ("food", "drink") for word in LEXICON[f"N({agreement},{c})"]}
    text = " ".join(sentences(30_000, np.random.default_rng(3)).to_pylist())
    found = set(re.findall(r"\b(?:a|the|these|this) delicious (\w+)", text))
    assert len(found) > 20
    assert found <= foods
    accepted = {
        noun
        for noun in foods | set(LEXICON["NG(m)"] + LEXICON["N(x,tool)"])
        if recognises(f"She picked a delicious {noun}.")
    }
    assert accepted == set(LEXICON["N(x,food)"])


def test_sampler_draws_the_grammars_probabilities():
    # the determiner of a plural noun phrase: exact law from the compiled rules
    exact: Counter = Counter()
    for probability, right in compiled()["Det(p)"]:
        if right[0] in LEXICON:
            entries = LEXICON[right[0]]
            for word, share in zip(entries, word_weights(len(entries)), strict=True):
                exact[word] += probability * share
        else:
            exact[right[0]] += probability
    count = 40_000
    drawn = Counter(phrase[0] for phrase in phrases("Det(p)", count, np.random.default_rng(4)))
    assert sum(exact.values()) == pytest.approx(1)
    for word, probability in exact.items():
        error = np.sqrt(probability * (1 - probability) / count)
        assert abs(drawn[word] / count - probability) < 5 * error, word


def test_every_rule_is_used():
    # a misspelt category would silently remove the alternatives that need it
    used = {(left, right) for left, alternatives in compiled().items() for _, right in alternatives}
    alive, declared = set(), set()
    for left, number, _, right in _alternatives():
        declared.add(number)
        if (left, right) in used:
            alive.add(number)
    assert len(declared) > 200
    assert declared == alive


def test_forms_are_inherited():
    # a verb form on the right of a rule must come from its left side, else "she has enjoys" would be derived
    for line in RULES.replace("\n    |", " |").splitlines():
        left, _, right = line.partition(" -> ")
        assert set(re.findall(r"\?[ef]\b", right)) <= set(re.findall(r"\?[ef]\b", left)), line


def test_probabilities_sum_to_one():
    assert all(sum(p for p, _ in alternatives) == pytest.approx(1) for alternatives in compiled().values())


def test_inflection():
    forms = {
        entries[0]: entries
        for entries in zip(*(LEXICON[f"V(vehicle,{f})"] for f in ("base", "s", "past", "part", "ing")), strict=True)
    }
    assert forms["drive"] == ("drive", "drives", "drove", "driven", "driving")
    assert forms["park"] == ("park", "parks", "parked", "parked", "parking")
    everything = {word for entries in LEXICON.values() for word in entries}
    assert {"stopped", "stopping", "hurried", "hurries", "fleeing", "watches", "goes", "knives"} <= everything
    assert {"Mary's", "children", "cherries", "boxes", "tries", "planned"} <= everything


def test_frames_are_strict():
    # an intransitive verb has no transitive homograph: otherwise argument-structure pairs would be ambiguous
    frames = [c[2:].split(",")[0] for c in LEXICON if c.startswith("V(") and c.endswith(",base)")]
    classes = [frame for frame in frames if f"N(p,{frame})" in LEXICON]
    intransitive = set(LEXICON["V(intr,past)"]) | set(LEXICON["V(tintr,past)"])
    for frame in [*classes, "art", "dit", "lovepos", "loveneg"]:
        assert not intransitive & set(LEXICON[f"V({frame},past)"]), frame
    for category in LEXICON:
        if category.startswith("V(") and category.endswith(",base)"):
            past = LEXICON[category.replace("base", "past")]
            assert not set(LEXICON[category]) & set(past), category


def test_generate():
    config = EnglishCorpus(kind="english", sentences=3000, valid=400, test=300)
    tables = generate(config, "babble", seed=1)
    assert {split: len(table) for split, table in tables.items()} == {"train": 3000, "valid": 400, "test": 300}
    texts = {split: table["text"].to_pylist() for split, table in tables.items()}
    assert all(tables[split].column_names == ["text"] for split in tables)
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not set(texts[one]) & set(texts[other])
    again = generate(config, "babble", seed=1)
    assert all(again[split].equals(tables[split]) for split in tables)
    assert not generate(config, "babble", seed=2)["train"].equals(tables["train"])
    assert not generate(config, "prattle", seed=1)["train"].equals(tables["train"])
