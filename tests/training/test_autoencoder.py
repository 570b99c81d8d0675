"""The masked autoencoder's objective: against a plain forward pass without removal, and against plain MLM."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from runs import make_run
from torch.nn import functional as F

from masklab.config.schema import Encoder, Masking, Objective
from masklab.config.schema import Mae as MaeSettings
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.positions import bias_at
from masklab.objectives import Setup
from masklab.objectives.mae import Mae
from masklab.tokenizers import MASK, PAD, SEP
from masklab.tokens import TokenStore
from masklab.training.learner import Learner
from masklab.training.loop import train
from masklab.training.step import masked_step
from masklab.training.validation import Validation

SIZES = {"layers": 2, "hidden": 32, "heads": 4, "max_positions": 64, "dropout": 0.0, "init_range": 0.2}
RELATIVE = SIZES | {"positions": "relative", "relative_buckets": 8, "relative_distance": 20}
DECODER = {"layers": 2, "intermediate": 48}
ATTENTIONS = ("self", "self+cross", "causal+cross", "cross")


# --- the plain forward pass: full length, padding and masks instead of removal -----------------------------------


def norm(layer, x):
    return F.layer_norm(x, x.shape[-1:], layer.weight, layer.bias, layer.eps)


def dense(layer, x):
    return x @ layer.weight.T + layer.bias


def heads(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)  # [B, n, T, d]


def attend(q, k, v, bias):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def self_attention(attention, x, bias):
    q, k, v = dense(attention.in_proj, x).unflatten(-1, (attention.heads, 3, -1)).unbind(3)
    return attend(*(part.transpose(1, 2) for part in (q, k, v)), bias)


def feed_forward(block, x):
    return norm(block.ffn_norm, x + dense(block.ffn_out, F.gelu(dense(block.ffn_in, x))))


def blocked(allowed):
    """[B, ..., T] bool -> additive mask that broadcasts over heads and queries."""
    return torch.zeros(allowed.shape).masked_fill(~allowed, -1e30)


def plain(model, batch, aligned=True):
    """Logits [B, T, V] at every position: absolute and relative positions, post-norm, every row at full length."""
    size, length = batch.ids.shape
    real = torch.arange(length) < batch.lengths[:, None]
    gone = torch.zeros(size * length, dtype=torch.bool).index_fill(0, batch.extra["dropped"], True).view(size, length)
    kept = real & ~gone
    index = torch.arange(length).expand(size, -1) if aligned else (kept.cumsum(1) - 1).clamp(min=0)
    embeddings = model.embeddings
    x = norm(embeddings.norm, embeddings.word[batch.ids] + embeddings.position[index])
    bias = bias_at(model.relative, index, model.config.relative_distance).transpose(0, 1)
    bias = bias + blocked(kept)[:, None, None]
    for block in model.blocks:
        x = norm(block.attention_norm, x + dense(block.out, self_attention(block.attention, x, bias)))
        x = feed_forward(block, x)
    memory, decoder, mask = x, model.decoder, embeddings.word[MASK]
    if decoder.attention == "causal+cross":
        before = torch.cat([torch.full((size, 1), SEP), batch.original[:, :-1]], 1)
        x = embeddings.word[before]
    elif decoder.attention == "cross":
        x = mask.expand_as(x)
    else:
        hidden = gone
        if "reset" in batch.extra:
            reset = torch.zeros(size * length, dtype=torch.bool).index_fill(0, batch.extra["reset"], True)
            hidden = hidden | reset.view_as(gone)
        x = torch.where(hidden[..., None], mask, x)
    if decoder.resize is not None:
        x = dense(decoder.resize, x)
    x = norm(decoder.norm, x + decoder.position[:length])
    see = real[:, None, None]
    if decoder.attention == "causal+cross":
        see = see & torch.ones(length, length).tril().bool()
    for block in decoder.blocks:
        if decoder.attention != "cross":
            x = norm(block.attention_norm, x + dense(block.out, self_attention(block.attention, x, blocked(see))))
        if decoder.attention != "self":
            cross, n = block.cross, block.cross.core.heads
            k, v = dense(cross.key_value, memory).unflatten(-1, (n, -1)).chunk(2, -1)
            context = attend(
                heads(dense(cross.query, x), n), k.transpose(1, 2), v.transpose(1, 2), blocked(kept)[:, None, None]
            )
            x = norm(block.cross_norm, x + dense(block.cross_out, context))
        x = feed_forward(block, x)
    x = norm(model.head.norm, F.gelu(dense(model.head.dense, x)))
    if model.head.project is not None:
        x = x @ model.head.project.weight.T
    return x @ embeddings.word.T + model.head.bias


def learner(english, folder, encoder, objective, **model):
    return Learner(make_run(english, encoder, folder, objective=objective, **model))


def mae(**settings):
    """The term, with the plainest decoder."""
    term = Mae(MaeSettings(**settings))
    term.prepare(Setup(Encoder(**SIZES, decoder=DECODER), 500, "tokens", "tokenizer"))
    return term


def uneven(run, step, seed=0):
    """One batch of the run with as many more masked tokens as make the rows' counts uneven."""
    masking = Masking(count="bernoulli", rate=0.3, specials=True)
    rows = np.random.default_rng(seed).integers(0, len(run.train_store.lengths), 16)
    rng = np.random.default_rng(step)
    (batch,) = masked_step(run.train_store, rows, rng, masking, run.vocab_size, 16, run.terms.reader).micro
    return batch


@torch.no_grad()
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize(
    "how", [{}, {"aligned": False}, {"delta": 0.5}, {"delta": 0.5, "reset": True}, {"delta": 1.0}], ids=str
)
def test_equals_a_plain_forward_pass_without_removal(english, tmp_path, attention, how):
    """To 1e-5 in fp32, on batches of uneven lengths and counts of masks; narrow decoders too."""
    if attention == "causal+cross" and "reset" in how:
        return
    for width in (None, 16):
        encoder = Encoder(**RELATIVE, decoder=DECODER | {"attention": attention, "hidden": width})
        run = learner(english, tmp_path, encoder, Objective(mae=how))
        for step in range(2):
            batch = uneven(run, step)
            if not how:
                lost = np.bincount(batch.extra["dropped"].numpy() // batch.ids.shape[1], minlength=16)
                assert len(set(lost)) > 3 and batch.extra["width"] < batch.ids.shape[1]
            found = run.terms.reader.forward(run.model, batch).logits
            truth = plain(run.model, batch, how.get("aligned", True)).flatten(0, 1)[batch.at]
            assert truth.std() > 0.3
            torch.testing.assert_close(found, truth, atol=1e-5, rtol=1e-5)


def test_the_encoder_works_on_a_smaller_batch(english, tmp_path, monkeypatch):
    """What the encoder is given: the kept tokens alone, in order, at their places."""
    encoder = Encoder(**RELATIVE, decoder=DECODER)
    run = learner(english, tmp_path, encoder, Objective(mae=1), masking=Masking(count="rounded", specials=True))
    seen = []
    inner = run.model._run

    def spy(ids, lengths, *rest):
        seen.append((ids, lengths))
        return inner(ids, lengths, *rest)

    monkeypatch.setattr(run.model, "_run", spy)
    for batch in run.batches(0):
        run.loss_of(batch)
        ids, lengths = seen.pop()
        masked = (batch.ids == MASK).sum(1)
        assert masked.sum() == len(batch.at) > 0
        assert ids.shape[1] == int((batch.lengths - masked).max()) < batch.ids.shape[1]
        for row, length in enumerate(lengths.tolist()):
            left = [token for token in batch.ids[row, : batch.lengths[row]].tolist() if token != MASK]
            assert ids[row, :length].tolist() == left


def test_everything_in_the_encoder_and_no_decoder_is_plain_mlm(english, tmp_path):
    """delta 1: the same losses and weights, bit for bit, after 8 updates, with dropout and random tokens."""
    encoder = Encoder(**RELATIVE | {"dropout": 0.1})
    masking = Masking(mask=0.8, random=0.1)
    both = [
        learner(english, tmp_path / name, encoder, objective, masking=masking)
        for name, objective in (("a", Objective(mlm=1)), ("b", Objective(mae={"delta": 1})))
    ]
    for run in both:
        run.model.train()
    for step in range(8):
        rows = [run.update(step) for run in both]
        assert rows[0]["loss"] == rows[1]["loss"] == rows[0]["mlm"] == rows[1]["mae"]
        assert rows[0]["grad_norm"] == rows[1]["grad_norm"]
    assert torch.equal(both[0].flat.values, both[1].flat.values)
    assert len({Validation(run).loss() for run in both}) == 1


def test_how_many_masks_stay(english):
    """delta of them: 4 standard errors over all rows; never off by one or more in a row."""
    store = TokenStore(english / "tokens", "train")
    rows = np.arange(1500)
    for delta in (0.0, 0.25, 0.7, 1.0):
        step = masked_step(
            store, rows, np.random.default_rng(5), Masking(rate=0.5), 500, 1500, mae(delta=delta, reset=True)
        )
        (batch,) = step.micro
        row = batch.at.numpy() // batch.ids.shape[1]
        masked = np.bincount(row, minlength=1500)
        gone = np.bincount(batch.extra["dropped"].numpy() // batch.ids.shape[1], minlength=1500)
        stays = masked - gone
        assert abs(stays - delta * masked).max() < 1
        assert abs(stays.sum() - delta * masked.sum()) <= 4 * np.sqrt(1500 / 4)
        assert sorted([*batch.extra["dropped"].tolist(), *batch.extra["reset"].tolist()]) == sorted(batch.at.tolist())
    # any of a row's: the first masked token of a row is as likely to stay as its last
    first = np.unique(row, return_index=True)[1]
    step = masked_step(store, rows, np.random.default_rng(6), Masking(rate=0.5), 500, 1500, mae(delta=0.5))
    gone = np.isin(step.micro[0].at.numpy(), step.micro[0].extra["dropped"].numpy())
    assert abs(gone[first].mean() - 0.5) < 4 * np.sqrt(0.25 / 1500)


def test_random_tokens_stay(english):
    """`masking.random` 1: nothing leaves."""
    store = TokenStore(english / "tokens", "train")
    masking = Masking(mask=0, random=1)
    (batch,) = masked_step(store, np.arange(30), np.random.default_rng(1), masking, 500, 30, mae()).micro
    assert len(batch.extra["dropped"]) == 0 and len(batch.at) > 30 and not (batch.ids == MASK).any()


def test_a_causal_decoder_predicts_every_token_from_those_before(english, tmp_path):
    encoder = Encoder(**SIZES | {"positions": "absolute"}, decoder=DECODER | {"attention": "causal+cross"})
    run = learner(english, tmp_path, encoder, Objective(mae=1))
    step = run.step(0)
    assert step.masked == step.tokens == sum(len(batch.at) for batch in step.micro)
    batch = step.micro[0]
    assert (batch.targets == batch.original.flatten()[batch.at]).all() and (batch.targets != PAD).all()
    before = run.terms.reader.forward(run.model, batch).logits
    with pytest.raises(MaskLabError, match="give `original`"):
        run.model(batch.ids, batch.lengths, batch.at)
    batch.original = batch.original.clone()
    # changes what is predicted at 4 and later, and nothing earlier
    batch.original[:, 3] = torch.where(batch.original[:, 3] == 17, 18, 17)
    after = run.terms.reader.forward(run.model, batch).logits
    same = (before == after).all(1)
    column = batch.at % batch.ids.shape[1]
    assert same[column <= 3].all() and not same[column == 4].any()


def test_a_run_learns_resumes_and_leaves_an_encoder(english, tmp_path):
    """The checkpoint is the encoder alone, in a folder like any other; its decoder lies next to it when asked for."""
    encoder = Encoder(**RELATIVE | {"dropout": 0.1, "init_range": 0.02}, decoder=DECODER)
    model = {"objective": Objective(mae=1), "steps": 40, "masking": Masking(count="rounded", specials=True)}
    runs = [make_run(english, encoder, tmp_path / str(keep), keep_decoder=keep, **model) for keep in (False, True)]
    for run in runs:
        train(run)
    metrics = pd.read_parquet(runs[0].output / "metrics.parquet")
    assert metrics["mae"].iloc[-1] < metrics["mae"].iloc[0] - 0.5 and metrics["valid_loss"].iloc[-1] < 6
    folders = [run.output / "step-40" for run in runs]
    assert not (folders[0] / "decoder.safetensors").exists() and (folders[1] / "decoder.safetensors").exists()
    alone, whole = (load_checkpoint(folder).eval() for folder in folders)
    assert alone.config == encoder.model_copy(update={"decoder": None}) and whole.config == encoder
    ids = torch.tensor([[0, 7, 8, 9, 1]])
    assert torch.equal(alone.encode(ids, torch.tensor([5])), whole.encode(ids, torch.tensor([5])))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_a_run_starts_from_an_encoder_whose_decoder_is_narrower(english, tmp_path, keep, shuffle):
    """The decoder, and the head of the decoder's width, start anew where the checkpoint leaves them out."""
    encoder = Encoder(**RELATIVE, decoder=DECODER | {"hidden": 16})
    first = make_run(english, encoder, tmp_path, objective=Objective(mae=1), steps=2, keep_decoder=keep)
    train(first)
    model = first.model.model_copy(update={"shuffle": shuffle})
    second = dataclasses.replace(first, model=model, phase=1, init=first.output / "step-2")
    found, given = Learner(second).model.state_dict(), load_checkpoint(second.init).state_dict()
    anew = () if keep else ("head.dense.", "head.norm.", "head.project.", "decoder.")
    assert len(found["head.dense.weight"]) == 16
    for name, tensor in found.items():
        assert name.startswith(anew) or torch.equal(in_order(tensor, shuffle), in_order(given[name], shuffle)), name


def in_order(tensor, shuffled):
    """A tensor, or of one that was shuffled its numbers by size."""
    return tensor.flatten().sort().values if shuffled else tensor
