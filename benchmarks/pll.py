"""Pseudo-log-likelihoods per second, ours over minicons', one sentence and one token at a time (one CPU thread).

    python benchmarks/pll.py [pairs] [--model ours|ModernBert|Roberta|...] [--layers 4] [--hidden 256] [--vocab 8000]

Minimal pairs of every phenomenon of the generated language, in the order of their file. `--model` names an architecture
of transformers, whose random model is then measured as any checkpoint made elsewhere. minicons is given batches of 32
sentences and the encoding of its own tokenizer; one sentence at a time (BabyLM's pipeline of 2023), all of its masked
copies go through transformers as one batch; one token at a time, each copy on its own, timed on some of the sentences.
They take turns, and medians over rounds are divided. Scores must agree to 1e-3.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from minicons.scorer import MaskedLMScorer

from masklab.config.schema import Encoder, EnglishPairs
from masklab.models.adopt import adopt
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes.minimal_pairs import pseudo_log_likelihood
from masklab.subwords import train
from masklab.tasks import build
from masklab.tokenizers import load_tokenizer, save_tokenizer

TOKENS = {"pad_token_id": 3, "cls_token_id": 0, "bos_token_id": 0, "sep_token_id": 1, "eos_token_id": 1}
LONGEST = 128


def made(root, options, texts):
    """(folder that transformers reads, folder that we read) of a random model with a tokenizer of these texts."""
    save_tokenizer(train(texts, 1000, candidates="running"), root / "tokenizer", LONGEST)
    size = max(
        options.vocab, load_tokenizer(root / "tokenizer").get_vocab_size()
    )  # rows that no text has are scored too
    if options.model == "ours":
        config = Encoder(
            layers=options.layers, hidden=options.hidden, heads=4, max_positions=LONGEST, positions=options.positions,
            init_range=0.1,
        )  # fmt: skip
        model = MaskedLM(config, size, generator=torch.Generator().manual_seed(1))
        save_checkpoint(model, root / "step-1", tokenizer_folder=root / "tokenizer", metadata={})
        return root / "step-1", root / "step-1"
    config = getattr(transformers, f"{options.model}Config")(
        vocab_size=size, hidden_size=options.hidden, num_hidden_layers=options.layers, num_attention_heads=4,
        intermediate_size=4 * options.hidden, max_position_embeddings=LONGEST + 4, initializer_range=0.1, **TOKENS,
    )  # fmt: skip
    torch.manual_seed(1)
    folder = root / options.model.lower()
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(root / "tokenizer").save_pretrained(folder)
    adopt(folder, root / "ours")
    return folder, root / "ours"


@torch.inference_mode()
def one_at_a_time(model, tokenizer, texts, most=LONGEST):
    """Each sentence on its own: its masked copies in batches of `most`."""
    scores = []
    for text in texts:
        ids = torch.tensor(tokenizer(text)["input_ids"])
        places = torch.arange(1, len(ids) - 1)
        copies = ids.repeat(len(places), 1)
        copies[torch.arange(len(places)), places] = tokenizer.mask_token_id
        parts = []
        for part, at in zip(copies.split(most), places.split(most), strict=True):
            logits = model(input_ids=part, attention_mask=torch.ones_like(part)).logits
            parts.append(logits[torch.arange(len(at)), at].log_softmax(-1))
        logs = torch.cat(parts)
        scores.append(logs.gather(1, ids[places][:, None]).sum().item())
    return scores


def minicons(scorer, texts):
    scores = []
    for at in range(0, len(texts), 32):
        batch = scorer.tokenizer(texts[at : at + 32], padding=True)
        scores += scorer.sequence_score(batch, reduction=lambda row: row.sum().item(), PLL_metric="original")
    return scores


def timed(function, *arguments):
    start = time.process_time()
    return function(*arguments), time.process_time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", type=int, nargs="?", default=260)
    parser.add_argument("--model", default="ours")
    parser.add_argument("--positions", default="absolute")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    pairs = build(EnglishPairs(kind="english-pairs", pairs=-(-options.pairs // 13)), "pairs", 1)[0]["test"]
    texts = [text for row in pairs.itertuples() for text in (row.good, row.bad)][: 2 * options.pairs]
    with tempfile.TemporaryDirectory() as root:
        theirs, ours = made(Path(root), options, texts)
        model, tokenizer = load_checkpoint(ours), load_tokenizer(ours)
        scorer = MaskedLMScorer(str(theirs), "cpu")
        plain = transformers.AutoModelForMaskedLM.from_pretrained(theirs).eval()
        reader = transformers.AutoTokenizer.from_pretrained(theirs)
    pseudo_log_likelihood(model, tokenizer, texts[:64])
    seconds = {"ours": [], "minicons": [], "one sentence at a time": [], "one token at a time": []}
    some = texts[:: max(1, len(texts) // 40)]
    for _ in range(options.rounds):
        wanted, spent = timed(one_at_a_time, plain, reader, texts)
        seconds["one sentence at a time"].append(spent)
        _, spent = timed(one_at_a_time, plain, reader, some, 1)
        seconds["one token at a time"].append(spent * len(texts) / len(some))
        for name, run in (("ours", (pseudo_log_likelihood, model, tokenizer)), ("minicons", (minicons, scorer))):
            scores, spent = timed(*run, texts)
            seconds[name].append(spent)
            np.testing.assert_allclose(scores, wanted, atol=1e-3)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{len(texts)} sentences, {len(set(texts))} distinct, {options.rounds} rounds")
    for name, spent in medians.items():
        print(f"{name}: {len(texts) / spent:.0f}/s ({', '.join(f'{value:.2f}' for value in seconds[name])} s)")
    for name in ("one token at a time", "one sentence at a time"):
        print(f"over {name}: {medians[name] / medians['ours']:.1f}")
    print(f"ratio: {medians['minicons'] / medians['ours']:.1f}")


if __name__ == "__main__":
    main()
