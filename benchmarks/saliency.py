"""Saliency of words and short phrases by occlusion, in batches, over one hidden copy at a time (one CPU thread).

    python benchmarks/saliency.py [sentences] [--layers 2] [--hidden 64] [--rounds 5] [--threads 1]

Generated English, a random classifier, and for each sentence every run of one to four words as a candidate. The peer
does as the released code of Chiang and Yogatama (2023): it puts [MASK] into the text, tokenises it, and asks
BertForSequenceClassification of transformers, a candidate at a time. Both read the same weights and must agree to 1e-5.
They take turns; the last line is their median seconds divided.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

import numpy as np
import torch
import transformers

from masklab.config.schema import Encoder, EnglishPairs
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.phrases.saliency import saliency
from masklab.probes.classifier import Classifier
from masklab.subwords import train
from masklab.tasks import build
from masklab.tasks.encoding import content_ends, content_ids
from masklab.tokenizers import load_tokenizer, save_tokenizer

LONGEST, WORDS = 64, 4


def made(root, options, texts):
    """(our classifier, transformers' of the same weights, our tokenizer, transformers')."""
    save_tokenizer(train(texts, 500, candidates="running"), root / "tokenizer", LONGEST)
    tokenizer = load_tokenizer(root / "tokenizer")
    config = Encoder(
        positions="absolute", layers=options.layers, hidden=options.hidden, heads=4, max_positions=LONGEST,
        init_range=0.1,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    model = MaskedLM(config, tokenizer.get_vocab_size(), generator=generator)
    save_checkpoint(model, root / "model", tokenizer_folder=root / "tokenizer", metadata={})
    ours = Classifier(load_checkpoint(root / "model"), 2)
    ours.reset_head(generator)
    theirs = transformers.BertForSequenceClassification.from_pretrained(root / "model", num_labels=2)
    heads = (theirs.bert.pooler.dense, ours.dense), (theirs.classifier, ours.classifier)
    for their, own in heads:
        their.load_state_dict(own.state_dict())
    reader = transformers.AutoTokenizer.from_pretrained(root / "tokenizer")
    return ours.eval(), theirs.eval(), tokenizer, reader


def candidates(words):
    """(first word, word after the last) of every run of one to four words."""
    return [(at, at + size) for size in range(1, WORDS + 1) for at in range(len(words) - size + 1)]


def in_batches(model, tokenizer, texts):
    ids, ends = content_ids(tokenizer, texts), content_ends(tokenizer, texts)
    spans = []
    for text, tokens in zip(texts, ends, strict=True):
        words = text.split(" ")
        after = np.cumsum([len(word) + 1 for word in words]) - 1
        first = np.append(0, np.searchsorted(tokens, after, side="right"))  # token that each word begins with
        spans.append([(0, int(first[begin]), int(first[end])) for begin, end in candidates(words)])
    return saliency(model, [(row, None) for row in ids], spans, LONGEST)


@torch.inference_mode()
def one_at_a_time(model, reader, texts):
    def ask(text):
        return model(**reader(text, return_tensors="pt")).logits[0].softmax(-1)

    scores = []
    for text in texts:
        words, label = text.split(" "), int(ask(text).argmax())
        scores.append(
            [
                float(ask(" ".join([*words[:begin], reader.mask_token, *words[end:]]))[label])
                for begin, end in candidates(words)
            ]
        )
    return scores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sentences", type=int, nargs="?", default=60)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    pairs = build(EnglishPairs(kind="english-pairs", pairs=-(-options.sentences // 13)), "pairs", 1)[0]["test"]
    # full stops are words here, so that a candidate ends where its tokens do
    texts = [row.good.replace(".", " .") for row in pairs.itertuples()][: options.sentences]
    with tempfile.TemporaryDirectory() as root:
        ours, theirs, tokenizer, reader = made(Path(root), options, texts)
    seconds = {"in batches": [], "one at a time": []}
    for _ in range(options.rounds):
        found = {}
        runs = {"in batches": (in_batches, ours, tokenizer), "one at a time": (one_at_a_time, theirs, reader)}
        for name, (run, *given) in runs.items():
            start = time.perf_counter()
            found[name] = run(*given, texts)
            seconds[name].append(time.perf_counter() - start)
        for left, right in zip(*found.values(), strict=True):
            np.testing.assert_allclose(left, right, atol=1e-5)
    count = sum(len(scores) for scores in found["in batches"])
    medians = {name: statistics.median(spent) for name, spent in seconds.items()}
    print(f"{len(texts)} sentences, {count} candidates, {options.rounds} rounds")
    for name, spent in medians.items():
        print(f"{name}: {count / spent:.0f}/s ({', '.join(f'{value:.2f}' for value in seconds[name])} s)")
    print(f"ratio: {medians['one at a time'] / medians['in batches']:.1f}")


if __name__ == "__main__":
    main()
