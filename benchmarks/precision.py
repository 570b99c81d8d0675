"""Training in bf16: how far the validation loss is from that of fp32, ÷ the spread of replicates in fp32.

    python benchmarks/precision.py [--layers 2 --hidden 128 --steps 1200 --replicates 5]

One recipe on generated English, trained to the end in either precision, with the same batches, masks and initial
weights in both. The spread is the standard deviation over replicates. The last line is the difference of the mean
losses / spread: below 1, the choice matters less than the seed does.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path

import torch

from masklab.config.schema import Encoder, EnglishCorpus, Model, Objective
from masklab.corpora import generate
from masklab.inside_libc import keep_freed_memory
from masklab.subwords import train
from masklab.tokens import write_tokens
from masklab.training.run import Run
from masklab.training.stack import learner_of
from masklab.training.validation import Validation


def write_corpus(folder: Path, sentences: int, vocab: int) -> None:
    splits = generate(EnglishCorpus(kind="english", sentences=sentences, valid=1000, test=200), "english", 1)
    tokenizer = train(splits["train"]["text"].to_pylist(), vocab)
    for split in ("train", "valid"):
        write_tokens(splits[split]["text"], tokenizer, 64, folder, split)


def loss_of(run: Run) -> float:
    learner = learner_of(run)
    learner.model.train()
    for step in range(run.model.steps):
        learner.update(step)
    return Validation(learner).loss()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for key, default in {"layers": 2, "hidden": 128, "steps": 1200, "batch": 32, "replicates": 5, "threads": 1}.items():
        parser.add_argument(f"--{key}", type=int, default=default, help="(default: %(default)s)")
    parser.add_argument("--norm", choices=["post", "pre"], default="post")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    keep_freed_memory()
    heads = max(1, args.hidden // 64)
    encoder = Encoder(
        positions="absolute", layers=args.layers, hidden=args.hidden, heads=heads, max_positions=64, norm=args.norm
    )
    losses = {"fp32": [], "bf16": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_corpus(folder, 40000, 1000)
        model = Model(
            corpus="c", tokenizer="t", encoder="e", objective="o", steps=args.steps, batch_size=args.batch,
            optimiser={"lr": 2e-3, "warmup": 0.1},
        )  # fmt: skip
        run = Run("benchmark", 1, model, encoder, Objective(mlm=1), folder, folder, folder / "out", folder / "state")
        for seed in range(args.replicates):
            for precision, found in losses.items():  # in turns
                chosen = model.model_copy(update={"precision": precision})
                start = time.process_time()
                found.append(loss_of(dataclasses.replace(run, seed=seed, model=chosen)))
                print(
                    f"replicate {seed} {precision}: {found[-1]:.4f}, {time.process_time() - start:.0f} CPU s",
                    flush=True,
                )
    means = {precision: statistics.mean(found) for precision, found in losses.items()}
    spreads = {precision: statistics.stdev(found) for precision, found in losses.items()}
    for precision in losses:
        print(f"{precision}: {means[precision]:.4f} nats, standard deviation {spreads[precision]:.4f}")
    print(f"ratio: {abs(means['bf16'] - means['fp32']) / spreads['fp32']:.2f}")


if __name__ == "__main__":
    main()
