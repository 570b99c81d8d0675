"""Pseudo-log-likelihoods per second, ours over minicons' (same checkpoint, same sentences, one CPU thread).

    python benchmarks/pll.py [pairs]

minicons is given batches of 32 sentences and the encoding of its own tokenizer. Scores must agree to 1e-3.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from minicons.scorer import MaskedLMScorer

from masklab.config.schema import Encoder
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes.minimal_pairs import pseudo_log_likelihood
from masklab.subwords import train
from masklab.tokenizers import load_tokenizer, save_tokenizer

NOUNS = ("cat", "dog", "teacher", "child", "river", "house", "letter", "garden")
VERBS = ("follow", "see", "remember", "paint", "cross")
ADJECTIVES = ("old", "small", "quiet", "green", "very tall")


def pairs(count, rng):
    """Minimal pairs of subject-verb agreement."""
    for _ in range(count):
        noun, other, verb = rng.choice(NOUNS), rng.choice(NOUNS), rng.choice(VERBS)
        adjectives = " ".join(rng.choice(ADJECTIVES, rng.integers(1, 5)))
        yield f"The {adjectives} {noun}s {verb} the {other}.", f"The {adjectives} {noun}s {verb}s the {other}."


def main(count=500):
    torch.set_num_threads(1)
    texts = [text for pair in pairs(count, np.random.default_rng(1)) for text in pair]
    with tempfile.TemporaryDirectory() as root:
        save_tokenizer(train(texts, 400), Path(root) / "tokenizer", 64)
        tokenizer = load_tokenizer(Path(root) / "tokenizer")
        config = Encoder(layers=2, hidden=64, heads=4, max_positions=64, init_range=0.1)
        model = MaskedLM(config, tokenizer.get_vocab_size(), generator=torch.Generator().manual_seed(1))
        folder = Path(root) / "step-1"
        save_checkpoint(model, folder, tokenizer_folder=Path(root) / "tokenizer", metadata={})
        model, scorer = load_checkpoint(folder), MaskedLMScorer(str(folder), "cpu")
    pseudo_log_likelihood(model, tokenizer, texts[:64])
    start = time.process_time()
    ours = pseudo_log_likelihood(model, tokenizer, texts)
    middle = time.process_time()
    theirs = []
    for at in range(0, len(texts), 32):
        batch = scorer.tokenizer(texts[at : at + 32], padding=True)
        theirs += scorer.sequence_score(batch, reduction=lambda row: row.sum().item(), PLL_metric="original")
    end = time.process_time()
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    distinct = len(set(texts))
    print(f"ours {len(texts) / (middle - start):.0f}/s, minicons {len(texts) / (end - middle):.0f}/s", end="; ")
    print(f"{distinct} of {len(texts)} sentences distinct; ratio {(end - middle) / (middle - start):.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
