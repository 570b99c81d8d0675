"""A small causal language model trained on token arrays, as a Hugging Face folder: the offline stand-in for OPT.

A plain loop: next-token cross-entropy over whole sequences, [CLS] first and [SEP] last. A step's batch is a function
of (seed, name, step), so that a run killed at any moment and started again from its state is the same run.
"""

import logging
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from masklab.batches import BatchPlan
from masklab.corpora.causal.loading import quiet
from masklab.errors import MaskLabError
from masklab.files import atomic_folder, read_json, sha256, write_json
from masklab.jobs import saved, state
from masklab.jobs.progress import Progress
from masklab.optim import flat as optim
from masklab.rng import seed_at
from masklab.tokenizers import CLS, PAD, SEP, SPECIALS
from masklab.tokens import TokenStore

log = logging.getLogger("masklab")
VALID_ROWS, VALID_BATCH = 512, 64


def initial_model(config, vocab_size: int, positions: int, seed: int):
    """A new model of a `CausalModel`: transformers' own class and initialisation."""
    from transformers import AutoModelForCausalLM, GPT2Config, OPTConfig

    shared = {"vocab_size": vocab_size, "bos_token_id": CLS, "eos_token_id": SEP, "pad_token_id": PAD}
    if config.architecture == "gpt2":
        sizes = {"n_layer": config.layers, "n_embd": config.hidden, "n_head": config.heads, "n_positions": positions}
        settings = GPT2Config(**sizes, **shared, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    else:
        sizes = {"num_hidden_layers": config.layers, "hidden_size": config.hidden, "ffn_dim": 4 * config.hidden}
        sizes |= {"num_attention_heads": config.heads, "word_embed_proj_dim": config.hidden}
        settings = OPTConfig(**sizes, **shared, max_position_embeddings=positions, dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(settings)


def next_token_losses(model, ids) -> torch.Tensor:
    """Cross-entropy in nats of each token but [CLS] of padded rows [B, T], end to end, [tokens]."""
    wanted = ids[:, 1:]
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    inside = wanted != PAD
    return F.cross_entropy(logits[inside].float(), wanted[inside], reduction="none")


def train(config, name: str, seed: int, tokens, tokenizer, output, state_folder, device="cpu", manifest=None) -> dict:
    """Train the model of a `CausalModel` and write it to the folder `output`; returns what its manifest holds.

    tokens, tokenizer: folders of the token arrays and of their tokenizer. `state_folder` keeps the state of an
    unfinished run, every `save_minutes`, and is locked and cleared by this function. manifest: where the manifest is
    written, if anywhere.

    Raises:
        MaskLabError: a loss is not a number, that on the validation split at the end included.
    """
    train_store, meta = TokenStore(tokens, "train"), read_json(Path(tokens) / "meta.json")
    model = initial_model(config, meta["vocab_size"], meta["max_length"], seed_at(seed, name, config.seed, "init"))
    model.to(device).train()
    flat = optim.FlatParameters(model.parameters())
    plan = BatchPlan(train_store.lengths, config.batch_size, seed, name, config.seed, eligible=train_store.lengths > 2)
    settings = config.model_dump(mode="json")
    made_of = {"name": name, "seed": seed, "config": config.model_dump(mode="json", exclude={"save_minutes"})}
    made_of |= {"tokens": meta, "device": str(device)}
    with state.locked(state_folder):
        file = Path(state_folder) / "state.safetensors"
        first = _restore(file, made_of, flat, state_folder)
        progress = Progress(name, "steps", start=first, folder=state_folder)
        progress.begin(config.steps)
        clock = time.monotonic()
        for step in range(first, config.steps):
            ids, _ = train_store.batch(plan.batch(step))
            losses = next_token_losses(model, ids.to(device))
            losses.mean().backward()
            loss = float(losses.detach().mean())
            if not math.isfinite(loss):
                raise MaskLabError(f"causal_models.{name}: the loss is {loss} at step {step + 1}; lower optimiser.lr")
            if time.monotonic() - clock >= 60 * config.save_minutes:
                saved.attempt(file, flat.state(), made_of, step=step)
                clock = time.monotonic()
            how, rate = config.optimiser, optim.rate_at(step, config.steps, config.optimiser)
            flat.step(
                rate, how.weight_decay, how.clip, kind=how.kind, betas=how.betas, eps=how.eps, momentum=how.momentum
            )
            progress(step + 1, config.steps, loss=loss)
        valid = validate(model.eval(), TokenStore(tokens, "valid"), device)
        if not math.isfinite(valid):  # of the last update nothing else tells
            raise MaskLabError(f"causal_models.{name}: the validation loss is {valid} at the end; lower optimiser.lr")
        _save(model.cpu(), tokenizer, output)
        weights = sha256(Path(output) / "model.safetensors")
        facts = {"model": name, "weights": weights, "valid_loss": valid, "config": settings, "seed": seed}
        if manifest is not None:
            write_json(facts, manifest)
        state.done(state_folder)
    log.info("%s: %.3f nats per token on the validation split", name, valid)
    return facts


def _restore(file, made_of, flat, folder) -> int:
    """Restore the saved state, if there is one of this run; returns the step to go on with."""
    found = saved.load(file, made_of)
    if found is None:
        state.clear(folder)
        return 0
    flat.load(found.tensors)
    log.info("resuming at step %d", found.facts["step"])
    return found.facts["step"]


@torch.inference_mode()
def validate(model, store, device="cpu") -> float:
    """Mean next-token loss in nats on up to `VALID_ROWS` sequences from all over the split."""
    rows = np.flatnonzero(store.lengths > 2)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), VALID_ROWS)).astype(int)]
    losses = [
        next_token_losses(model, store.batch(rows[start : start + VALID_BATCH])[0].to(device))
        for start in range(0, len(rows), VALID_BATCH)
    ]
    return float(torch.cat(losses).mean())


def _save(model, tokenizer, output):
    """The model and its tokenizer as one Hugging Face folder: [CLS] begins and [SEP] ends a text."""
    quiet()
    with atomic_folder(output) as temporary:
        model.save_pretrained(temporary)
        for file in Path(tokenizer).iterdir():
            if file.name != "tokenizer_config.json":
                (temporary / file.name).write_bytes(file.read_bytes())
        roles = {"bos_token": SPECIALS[CLS], "eos_token": SPECIALS[SEP]}
        write_json(
            read_json(Path(tokenizer) / "tokenizer_config.json") | roles,
            temporary / "tokenizer_config.json",
            lasting=False,
        )
