"""Causal corpora: the exact law and the sampler against enumeration of every sentence of tiny models of two classes."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from masklab.corpora.causal import law as module
from masklab.corpora.causal.law import Law
from masklab.corpora.causal.restricted_model import Restricted, Rules
from masklab.corpora.causal.sample import sample
from masklab.errors import MaskLabError
from masklab.rng import torch_generator

IDS, END, START = (7, 3, 9, 5), 2, 1
RULES = {
    "eos": Rules(ids=IDS, start=START, end=END, last=None, length=4, shortest=1, temperature=1.0),
    "eos-late": Rules(ids=IDS, start=START, end=END, last=None, length=4, shortest=2, temperature=0.7),
    "word": Rules(ids=IDS, start=START, end=None, last=2, length=4, shortest=2, temperature=1.0),
    "none": Rules(ids=IDS, start=START, end=None, last=None, length=3, shortest=1, temperature=1.3),
}


def tiny(kind, dtype=torch.float64):
    """An untrained model of 11 tokens with peaked distributions."""
    from transformers import AutoModelForCausalLM, GPT2Config, OPTConfig

    config = {
        "gpt2": GPT2Config(vocab_size=11, n_embd=16, n_layer=2, n_head=2, n_positions=8),
        "opt": OPTConfig(vocab_size=11, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=32,
                         word_embed_proj_dim=16, max_position_embeddings=8),
    }[kind]  # fmt: skip
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.5)
    return model.to(dtype)


def enumerated(model, rules):
    """{sentence: probability} of all sentences: the whole model is run on each prefix, and renormalised here."""
    found = {}

    @torch.no_grad()
    def grow(prefix, p):
        if len(prefix) == rules.length:
            found[prefix] = p
            return
        tokens = torch.tensor([[rules.start, *(rules.ids[s] for s in prefix)]])
        scores = torch.exp(model(input_ids=tokens).logits[0, -1].double() / rules.temperature)
        outcomes = {s: float(scores[rules.ids[s]]) for s in range(len(rules.ids))}
        if rules.end is not None and len(prefix) >= rules.shortest:
            outcomes["end"] = float(scores[rules.end])
        if rules.last is not None and len(prefix) + 1 < rules.shortest:
            del outcomes[rules.last]
        total = sum(outcomes.values())
        for outcome, score in outcomes.items():
            if outcome == "end":
                found[prefix] = p * score / total
            elif outcome == rules.last:
                found[*prefix, outcome] = p * score / total
            else:
                grow((*prefix, outcome), p * score / total)

    grow((), 1.0)
    return found


def padded(sentences):
    lengths = np.array([len(sentence) for sentence in sentences])
    words = np.zeros((len(sentences), lengths.max()), np.int64)
    for row, sentence in enumerate(sentences):
        words[row, : len(sentence)] = sentence
    return words, lengths


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("kind", ["gpt2", "opt"])
def test_conditionals_equal_enumeration(kind, rules):
    """Every word of every sentence, to 1e-10 in float64; joint probabilities sum to 1 and agree as well."""
    model = tiny(kind)
    table = enumerated(model, rules)
    assert sum(table.values()) == pytest.approx(1, abs=1e-12)
    law, (words, lengths) = Law(Restricted(model, rules)), padded(list(table))
    logs = law.log_probability(words, lengths)
    assert np.abs(np.exp(logs) - list(table.values())).max() < 1e-12
    found = law.conditionals(words, lengths)
    for row, sentence in enumerate(table):
        for t in range(len(sentence)):
            wanted = np.array([table.get((*sentence[:t], v, *sentence[t + 1 :]), 0.0) for v in range(4)])
            assert np.abs(found[row, t] - wanted / wanted.sum()).max() < 1e-10
        assert not found[row, len(sentence) :].any()


def test_single_precision_is_exact_to_a_millionth(monkeypatch):
    """And so are candidates that run in batches of any size, and single words of sentences."""
    rules = RULES["eos"]
    words, lengths = padded(list(itertools.product(range(4), repeat=3))[::5])
    exact = Law(Restricted(tiny("opt"), rules)).conditionals(words, lengths)
    law = Law(Restricted(tiny("opt", torch.float32), rules))
    assert np.abs(law.conditionals(words, lengths) - exact).max() < 1e-6
    monkeypatch.setitem(module.MEMORY, "cpu", 5000)
    assert 1 <= law._pairs([(torch.zeros(1, 2, 2, 8),) * 2] * 2, 3) < 4
    assert np.abs(law.conditionals(words, lengths) - exact).max() < 1e-6
    rows, columns = np.array([3, 0, 3]), np.array([2, 1, 0])
    assert np.abs(law.conditionals_at(words, lengths, rows, columns) - exact[rows, columns]).max() < 1e-6


def test_a_small_gpu_runs_fewer_candidates_together(monkeypatch):
    """A quarter of its bytes at most, and never more than a large one."""
    law, size = Law(SimpleNamespace(rules=RULES["eos"], device=torch.device("cuda"))), 6 << 30
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=size))
    layers = [(torch.zeros(1, 2, 2, 8),) * 2] * 2
    small = law._pairs(layers, 3)
    size *= 20
    large = law._pairs(layers, 3)
    assert large / small == pytest.approx((1 << 33) / (6 << 28), rel=1e-4)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_the_sampler_draws_from_the_joint(rules):
    """Frequencies of whole sentences against the exact joint, within five standard errors each."""
    model, count = tiny("gpt2", torch.float32), 40_000
    table = enumerated(model, rules)
    words, lengths, logs = sample(Restricted(model, rules), count, torch_generator(1, "sample"))
    assert not words[np.arange(words.shape[1]) >= lengths[:, None]].any()
    seen = dict.fromkeys(table, 0)
    for row, length in zip(words, lengths, strict=True):
        seen[tuple(row[:length])] += 1  # a KeyError: not a sentence
    exact, found = np.array(list(table.values())), np.array(list(seen.values())) / count
    assert (np.abs(found - exact) < 5 * np.sqrt(exact * (1 - exact) / count) + 5 / count).all()
    told = [np.log(table[tuple(row[:length])]) for row, length in zip(words[:50], lengths, strict=False)]
    assert np.abs(np.array(told) - logs[:50]).max() < 1e-4


def test_restricting_leaves_the_model_as_it_was():
    model = tiny("opt")
    head = model.get_output_embeddings()
    Restricted(model, RULES["eos"])
    assert model.get_output_embeddings() is head and head.weight.shape[0] == 11


def test_impossible_sentences_are_refused():
    law = Law(Restricted(tiny("gpt2"), RULES["word"]))
    with pytest.raises(MaskLabError, match="sequence 1: impossible"):
        law.conditionals([[0, 1, 2], [2, 1, 2]])  # `last` before the end
    assert law.log_probability([[0, 1, 0]])[0] == -np.inf
    whole = Law(Restricted(tiny("gpt2"), RULES["none"]))
    with pytest.raises(MaskLabError, match="sequence 0: impossible"):
        whole.conditionals([[0, 1]])  # shorter than all sentences
    with pytest.raises(MaskLabError, match="must be 1 to 4"):
        law.conditionals([[0, 1, 2, 0, 1]])
    with pytest.raises(MaskLabError, match="must be 0 to 3"):
        law.conditionals([[0, 4]])


@pytest.mark.parametrize("kind", ["gpt2", "opt"])
def test_work_is_that_of_the_passes(kind):
    """What torch counts, to within what sentences as short as these leave open: 5 sentences, all of whose words are
    asked about."""
    from torch.utils.flop_counter import FlopCounterMode

    law, words, lengths = Law(Restricted(tiny(kind), RULES["none"])), np.zeros((5, 3), np.int64), np.full(5, 3)
    with FlopCounterMode(display=False) as counted:
        law.conditionals(words, lengths)
    assert 0.5 < law.work(lengths, lengths).sum() * module.FLOPS["cpu"] / counted.get_total_flops() < 2
