"""Fine-tuning 5 seeds x 4 training-set sizes of a small BERT: our wall over that of Hugging Face's Trainer.

    python benchmarks/finetune_many.py [--hidden 128 --layers 2] [--seeds 5] [--sizes 128 256 512 1024] [--threads 1]

Both fine-tune the same checkpoint (BertForSequenceClassification for the Trainer) on the same rows of a generated
task (does the word `the` occur in the sentence?), with the same epochs, batch size, learning rates, clipping and
dropout, measure the validation split after each epoch and the test split in the end, and stop nowhere early. In
turns, size by size, in this process; the faster of two rounds counts, for both.

The Trainer has its best settings: rows grouped by length, dynamic padding, fused AdamW, no worker processes, no
logging, no saving (we keep the best model in memory; it tests its last), evaluation rows sorted by length and in
batches of the best of a few sizes, fp32 or bf16, whichever is faster, data tokenised beforehand (our time includes
tokenising and reading the checkpoint). The last line is ours / Hugging Face.
"""

import argparse
import copy
import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

import numpy as np
import torch
import transformers
from transformers import (
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from masklab.config.schema import Encoder, EnglishLabels, FinetuneProbe
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes import Context, run
from masklab.probes.goals import Classification
from masklab.probes.recipe import Course
from masklab.probes.single import OneByOne
from masklab.probes.stacked import Start, Together, stack_size
from masklab.probes.task_tokens import restricted
from masklab.subwords import train
from masklab.tasks import build, write_task
from masklab.tasks.encoding import encode_split
from masklab.tokenizers import load_tokenizer, save_tokenizer


def world(root, args):
    """A checkpoint and a task folder on disk."""
    config = EnglishLabels(
        kind="english-labels", recipe="control_lexical_content", train=max(args.sizes), valid=400, test=400
    )
    splits, facts = build(config, "the", 1)
    for frame in splits.values():
        frame[["text_a", "text_b"]] = frame[["text_a", "text_b"]].astype("string")
    write_task(root / "task", splits, facts)
    save_tokenizer(train(splits["train"]["text_a"], args.vocab_size), root / "tokenizer", 64)
    encoder = Encoder(
        positions="absolute", layers=args.layers, hidden=args.hidden, heads=max(1, args.hidden // 64), max_positions=64
    )
    vocab_size = load_tokenizer(root / "tokenizer").get_vocab_size()
    model = MaskedLM(encoder, vocab_size, generator=torch.Generator().manual_seed(1))
    save_checkpoint(model, root / "step-1", tokenizer_folder=root / "tokenizer", metadata={})
    return root / "step-1", root / "task"


def ours(checkpoint, task, probe):
    """Test accuracy of each run."""
    rows = run(Context(probe=probe, checkpoint=checkpoint, tasks={"the": task}, name="many"))
    return [row["value"] for row in rows if row.get("metric") == "accuracy"]


class Theirs:
    """The Trainer's side; what it can do beforehand is done here."""

    def __init__(self, checkpoint, task, probe, eval_batch, attention, precision):
        self.checkpoint, self.probe, self.eval_batch, self.attention = checkpoint, probe, eval_batch, attention
        self.precision = precision
        tokenizer = load_tokenizer(checkpoint)
        self.collate = DataCollatorWithPadding(PreTrainedTokenizerFast.from_pretrained(checkpoint))
        splits = [encode_split(task / f"{name}.parquet", tokenizer, 64) for name in ("train", "valid", "test")]
        self.train, self.valid, self.test = map(self._rows, splits)
        self.valid, self.test = (
            sorted(rows, key=lambda row: len(row["input_ids"])) for rows in (self.valid, self.test)
        )

    @staticmethod
    def _rows(split):
        ids = [row[:length].tolist() for row, length in zip(split.ids, split.lengths, strict=True)]
        return [{"input_ids": row, "labels": label} for row, label in zip(ids, split.labels.tolist(), strict=True)]

    def finetune(self, size, seed, epochs=None):
        """Test accuracy of one run."""
        model = BertForSequenceClassification.from_pretrained(
            self.checkpoint, num_labels=2, attn_implementation=self.attention
        )
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder,
                num_train_epochs=epochs or self.probe.epochs,
                per_device_train_batch_size=self.probe.batch_size,
                per_device_eval_batch_size=self.eval_batch,
                learning_rate=self.probe.lr,
                lr_scheduler_type="linear",
                weight_decay=0.0,
                max_grad_norm=self.probe.clip,
                optim="adamw_torch_fused",
                train_sampling_strategy="group_by_length",
                eval_strategy="epoch",
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                dataloader_num_workers=0,
                dataloader_pin_memory=False,
                use_cpu=True,
                bf16=self.precision == "bf16",
                seed=seed,
            )
            trainer = Trainer(
                model,
                arguments,
                data_collator=self.collate,
                train_dataset=self.train[:size],
                eval_dataset=self.valid,
                compute_metrics=accuracy,
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
            return trainer.evaluate(self.test)["eval_accuracy"]


def accuracy(output):
    return {"accuracy": float((output.predictions.argmax(-1) == output.label_ids).mean())}


def timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def best_settings(checkpoint, task, probe, size):
    """The Trainer's fastest evaluation batch, attention and precision, by one short run each."""
    seconds = {}
    for settings in itertools.product((32, 128), ("sdpa", "eager"), ("fp32", "bf16")):
        theirs = Theirs(checkpoint, task, probe, *settings)
        seconds[settings] = min(timed(lambda t=theirs: t.finetune(size, 1, 1))[1] for _ in range(2))
    return min(seconds, key=seconds.get)


def compare_paths(checkpoint, task, probe, size):
    """Our own three ways, in turns: one at a time with the head by autograd, all by hand, and in one stack."""
    tokenizer = load_tokenizer(checkpoint)
    splits = [encode_split(task / f"{name}.parquet", tokenizer, 64) for name in ("train", "valid", "test")]
    (model,), splits = restricted([load_checkpoint(checkpoint)], splits)
    courses = [Course(probe, 1, "many", "t", size, seed, splits[0].lengths[:size]) for seed in probe.seeds]
    single, together = OneByOne(copy.deepcopy(model), Classification(2), probe), Together(probe)
    start = Start(model, Classification(2), *splits)
    ways = {
        "the head by autograd": lambda: single.finetune(courses, *splits),
        "by hand": lambda: [together.finetune([course], [start]) for course in courses],
        "stacked": lambda: together.finetune(courses, [start] * len(courses)),
    }
    seconds = {name: [] for name in ways}
    for _ in range(3):
        for name, way in ways.items():
            seconds[name].append(timed(way)[1])
    best = {name: min(values) for name, values in seconds.items()}
    single_seconds = best["the head by autograd"]
    said = ", ".join(f"{name} {value:.2f} s ({value / single_seconds:.2f})" for name, value in best.items())
    longest = int(splits[0].lengths[:size].max())
    used = "stacked" if stack_size(model.config, probe.batch_size, longest) > 1 else "by hand"
    print(
        f"our paths, {len(courses)} runs of {size} rows, hidden {model.config.hidden}: {said}; the probe takes: {used}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=128, help="(default: %(default)s)")
    parser.add_argument("--vocab-size", type=int, default=2000, help="at most (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512, 1024], help="(default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--lr", type=float, default=5e-4, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of ours (default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    probe = FinetuneProbe(
        precision=args.precision,
        kind="finetune",
        tasks=["the"],
        seeds=list(range(1, args.seeds + 1)),
        lr=args.lr,
        batch_size=32,
        epochs=args.epochs,
        evaluate_every="epoch",
        batches="length",  # as the Trainer's
        select="accuracy",
        patience=args.epochs + 1,
        max_length=64,
    )
    with tempfile.TemporaryDirectory() as folder:
        compare(*world(Path(folder), args), probe, args)


def compare(checkpoint, task, probe, args):
    eval_batch, attention, precision = best_settings(checkpoint, task, probe, min(args.sizes))
    theirs = Theirs(checkpoint, task, probe, eval_batch, attention, precision)
    lengths = [len(row["input_ids"]) for row in theirs.train]
    print(
        f"{args.layers} layers x {args.hidden}, tokens per sequence {np.mean(lengths):.1f} (at most {max(lengths)}),"
        f" {args.seeds} seeds x sizes {args.sizes}, {args.epochs} epochs, batch 32,"
        f" dropout 0.1, {args.threads} thread(s)",
        flush=True,
    )
    print(
        f"Trainer (transformers {transformers.__version__}): attention {attention}, evaluation batch {eval_batch},"
        f" {precision}; ours in {args.precision}",
        flush=True,
    )
    total = {"ours": 0.0, "theirs": 0.0}
    for size in args.sizes:
        sized = probe.model_copy(update={"sizes": [size]})
        seconds = {"ours": [], "theirs": []}
        for number in range(args.rounds):
            found, taken = timed(lambda s=sized: ours(checkpoint, task, s))
            seconds["ours"].append(taken)
            wanted, taken = timed(lambda n=size: [theirs.finetune(n, seed) for seed in probe.seeds])
            seconds["theirs"].append(taken)
            latest = ", ".join(f"{name} {values[-1]:.2f} s" for name, values in seconds.items())
            print(f"  size {size}, round {number + 1} of {args.rounds}: {latest}", flush=True)
        fastest = {name: min(values) for name, values in seconds.items()}
        total = {name: total[name] + fastest[name] for name in total}
        print(
            f"size {size}: ours {fastest['ours']:.2f} s, Trainer {fastest['theirs']:.2f} s; test accuracy ours"
            f" {statistics.mean(found):.3f}, Trainer {statistics.mean(wanted):.3f}",
            flush=True,
        )
    compare_paths(checkpoint, task, probe, min(args.sizes))
    print(f"ours {total['ours']:.1f} s, Trainer {total['theirs']:.1f} s")
    print(f"ratio: {total['ours'] / total['theirs']:.2f}")


if __name__ == "__main__":
    main()
