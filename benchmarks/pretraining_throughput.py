"""Pre-training throughput: tokens per second of MaskLab ÷ those of Hugging Face Trainer, same encoder and data.

    python benchmarks/pretraining_throughput.py                             # 4 layers x 256, CPU, fp32
    python benchmarks/pretraining_throughput.py --precision bf16
    python benchmarks/pretraining_throughput.py --layers 2 --hidden 128 [--precision bf16]
    python benchmarks/pretraining_throughput.py --layers 12 --hidden 768 --vocab 30522 --precision bf16 --updates 5
    python benchmarks/pretraining_throughput.py --gpu [--positions disentangled]
    python benchmarks/pretraining_throughput.py --gpu --length 512 --packed

The peer is `BertForMaskedLM` (or `DebertaForMaskedLM`) under `Trainer` with `DataCollatorForLanguageModeling` at
its best settings: length grouping, padding to the longest, scaled-dot-product attention where the class has it,
fused AdamW, no logging, no saving. Both train on the same sequences, as long as lines of real English text, with
15 % of the tokens masked, dropout 0.1 and gradients clipped to norm 1. Each works in a process of its own, started by
this one, and blocks of updates alternate; a block's time includes making its batches. Tokens are real ones:
padding is not counted. On a CPU the peer is tried in fp32 and in bf16; the peak is the best of many large products,
measured here. `--gpu` means BERT-base on one GPU, vocabulary 30,522, bf16, our forward pass compiled; the peer is tried
as it is and with torch_compile (DeBERTa in fp32 with TF32: under bf16 autocast it fails); the peak is the card's
(`--peak`, TFLOP/s). The last line is ours / the better peer.
"""

import argparse
import contextlib
import gc
import itertools
import math
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from torch.utils.data import Dataset

from masklab.config.schema import Encoder, Model, Objective
from masklab.files import write_json
from masklab.inside_libc import keep_freed_memory
from masklab.models.flops import training_flops
from masklab.models.huggingface import export_config
from masklab.tokenizers import CLS, MASK, PAD, SEP, SPECIALS, UNK
from masklab.training.run import Run
from masklab.training.stack import learner_of

# Tokens of a line (8,192 pieces, specials counted) at every twentieth quantile of 290,000 lines of Simple English
# Wikipedia, children's books, speech to children and telephone speech, lines under five words left out.
QUANTILES = (6, 8, 9, 10, 11, 13, 14, 16, 20, 25, 32, 39, 49, 58, 70, 83, 98, 117, 143, 190, 1721)
SEQUENCES = 40000


def real_lengths(quantiles, length: int, packed: bool = False):
    """Lengths of lines at the given quantiles, cut to `length`; packed: `length` each."""
    if packed:
        return np.full(len(quantiles), length)
    return np.interp(quantiles, np.linspace(0, 1, len(QUANTILES)), QUANTILES).astype(int).clip(7, length)


def write_corpus(folder: Path, vocab_size: int, length: int, packed: bool) -> list[list[int]]:
    """Token arrays with real lengths and Zipfian pieces; returns the same sequences as lists, specials included."""
    rng = np.random.default_rng(1)
    lengths = real_lengths(rng.random(SEQUENCES), length, packed)
    offsets = np.concatenate([[0], np.cumsum(lengths - 2)])
    share = 1 / np.arange(1, vocab_size - len(SPECIALS) + 1)
    ids = rng.choice(len(share), offsets[-1], p=share / share.sum()) + len(SPECIALS)
    for split in ("train", "valid"):
        np.save(folder / f"{split}.ids.npy", ids.astype(np.uint16))
        np.save(folder / f"{split}.offsets.npy", offsets)
    write_json({"vocab_size": vocab_size, "max_length": length}, folder / "meta.json")
    return [[CLS, *ids[a:b].tolist(), SEP] for a, b in itertools.pairwise(offsets)]


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Ours:
    """MaskLab's training loop, asked for blocks of updates."""

    def __init__(self, encoder: Encoder, rows, folder: Path, args):
        keep_freed_memory()  # as every job of the workflow does, garbage too
        gc.set_threshold(50_000)
        gc.collect()
        gc.freeze()
        model = Model(
            corpus="c", tokenizer="t", encoder="e", objective="o", steps=10**6, batch_size=args.batch,
            precision=args.precision, compile=args.gpu and not args.eager,
        )  # fmt: skip
        self.learner = learner_of(
            Run("benchmark", 1, model, encoder, Objective(mlm=1), folder, folder, folder, folder,
                device="cuda" if args.gpu else "cpu")
        )  # fmt: skip
        self.learner.model.train()
        self.step, self.updates = 0, args.updates

    def block(self) -> tuple[float, float, int]:
        """Tokens, seconds and places, padding among them, of one block."""
        synchronize()
        start, tokens, steps = time.perf_counter(), 0, range(self.step, self.step + self.updates)
        with self.learner.ahead(self.step):
            for self.step in steps:
                tokens += self.learner.update(self.step)["tokens"]
        synchronize()
        seconds, self.step = time.perf_counter() - start, steps.stop
        return tokens, seconds, sum(batch.ids.numel() for step in steps for batch in self.learner.batches(step))


class Sequences(Dataset):
    """What the peer reads: tokenised once, with the special-tokens mask that its collator would otherwise compute."""

    def __init__(self, rows: list[list[int]]):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "special_tokens_mask": [1, *[0] * (len(row) - 2), 1]}


class Peer:
    """Hugging Face's Trainer, asked for blocks of updates."""

    bf16, tf32, compiled = True, None, False

    def __init__(self, encoder: Encoder, rows, folder, args):
        from tokenizers import Tokenizer, models

        words = {token: number for number, token in enumerate(SPECIALS)}
        words |= {f"w{number}": number for number in range(len(SPECIALS), args.vocab)}
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer(models.WordLevel(words, unk_token=SPECIALS[UNK])),
            pad_token=SPECIALS[PAD], cls_token=SPECIALS[CLS], sep_token=SPECIALS[SEP], mask_token=SPECIALS[MASK],
        )  # fmt: skip
        described = export_config(encoder, args.vocab)
        config = transformers.AutoConfig.for_model(described.pop("model_type"), **described)
        self.model = transformers.AutoModelForMaskedLM.from_config(config)
        self.settings = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=args.batch, max_steps=args.updates,
            learning_rate=1e-4, optim="adamw_torch_fused", max_grad_norm=1.0, train_sampling_strategy="group_by_length",
            logging_strategy="no", save_strategy="no", report_to="none", disable_tqdm=True, bf16=self.bf16,
            tf32=self.tf32, use_cpu=not args.gpu, torch_compile=self.compiled, remove_unused_columns=False,
            dataloader_pin_memory=args.gpu, dataloader_num_workers=8 if args.gpu else 0,
            # else, as this process was itself spawned, each block would begin with eight that import torch
            dataloader_multiprocessing_context="fork" if args.gpu else None,
        )  # fmt: skip
        if args.gpu and (self.compiled or self.tf32):
            # transformers has asked for TF32 by torch's new interface alone; torch.compile asks for it by the old one
            # too, in torch 2.9 and later, and fails where they do not agree
            torch.set_float32_matmul_precision("high")
        self.data = Sequences(rows)
        self.collator = transformers.DataCollatorForLanguageModeling(
            tokenizer, mlm_probability=0.15, pad_to_multiple_of=8 if args.gpu else None
        )

    def block(self) -> tuple[float, float, int]:
        """Tokens, seconds and places of one block, its start-up left out."""
        times, tokens, places = [], [], []

        class Counting(transformers.Trainer):
            def training_step(self, model, inputs, *rest):
                tokens.append(inputs["attention_mask"].sum())
                places.append(inputs["attention_mask"].numel())
                return super().training_step(model, inputs, *rest)

        class Clock(transformers.TrainerCallback):
            def on_step_begin(self, *_, **__):
                times[:] = times or [time.perf_counter()]

            def on_train_end(self, *_, **__):
                synchronize()
                times.append(time.perf_counter())

        Counting(self.model, self.settings, self.collator, self.data, callbacks=[Clock()]).train()
        return int(sum(tokens)), times[1] - times[0], sum(places)


class FullPeer(Peer):
    """The same in fp32."""

    bf16 = False


class CompiledPeer(Peer):
    """The same in bf16, with torch_compile."""

    compiled = True


class Tf32Peer(FullPeer):
    """The same in fp32, whose products a GPU may round to TF32."""

    tf32 = True


class CompiledTf32Peer(Tf32Peer):
    """The same with torch_compile."""

    compiled = True


def peers(args) -> dict[str, type]:
    """Name -> what MaskLab is measured against, by the options. transformers' DeBERTa fails under bf16 autocast."""
    if not args.gpu:
        return {"Trainer bf16": Peer, "Trainer fp32": FullPeer}
    if args.positions == "disentangled":
        return {"Trainer TF32": Tf32Peer, "Trainer TF32, compiled": CompiledTf32Peer}
    return {"Trainer bf16": Peer, "Trainer bf16, compiled": CompiledPeer}


def work(make, pipe, encoder, args):
    """One side, in its own process: a block of updates whenever asked."""
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as temporary:
        run = make(encoder, write_corpus(Path(temporary), args.vocab, args.length, args.packed), Path(temporary), args)
        while True:
            pipe.recv()
            pipe.send((*run.block(), torch.cuda.max_memory_allocated() if args.gpu else 0))


def measure(sides: dict, encoder, args) -> dict[str, tuple[list[float], float, int]]:
    """Tokens per second of each block, share of padding and peak GPU memory of each side that was ready in time.

    The first round warms up, all sides at once: what is compiled takes a minute or more.
    """
    spawn = multiprocessing.get_context("spawn")
    pipes, processes, found = {}, {}, {}
    for name, make in sides.items():
        pipes[name], far = spawn.Pipe()
        processes[name] = spawn.Process(target=work, args=(make, far, encoder, args))  # its loader starts others
        processes[name].start()
        far.close()
    try:
        began = time.monotonic()
        for pipe in pipes.values():
            pipe.send(True)
        for name, pipe in pipes.items():
            if pipe.poll(max(0, began + args.patience - time.monotonic())):
                with contextlib.suppress(EOFError):
                    found[name] = [pipe.recv()]
            if name in found:
                print(f"{name}: ready after {time.monotonic() - began:.0f} s", flush=True)
            else:
                print(f"{name}: left out: it failed, or was not ready after {args.patience:.0f} s", flush=True)
                processes[name].kill()
        for number in range(args.rounds):
            for name, rows in found.items():
                pipes[name].send(True)
                rows.append(pipes[name].recv())
            rates = ", ".join(f"{name} {rows[-1][0] / rows[-1][1]:,.0f}" for name, rows in found.items())
            print(f"round {number + 1}: {rates} tokens/s", flush=True)  # a run that is cut short has these
    finally:
        for process in processes.values():
            process.kill()
    return {
        name: (
            [tokens / seconds for tokens, seconds, *_ in rows[1:]],
            1 - sum(row[0] for row in rows) / sum(row[2] for row in rows),
            rows[-1][3],
        )
        for name, rows in found.items()
    }


def best_product(precision: str, threads: int) -> float:
    """FLOP/s of the fastest of many products of 2,048 x 1,024 and 1,024 x 1,024 matrices on this CPU, by oneDNN."""
    torch.set_num_threads(threads)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    x, weight = torch.randn(2048, 1024).to(dtype), torch.randn(1024, 1024).to(dtype)
    best, until = math.inf, time.perf_counter() + 5
    while time.perf_counter() < until:
        start = time.perf_counter()
        torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
        best = min(best, time.perf_counter() - start)
    return 2 * x.numel() * len(weight) / best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--vocab", type=int, default=8192)
    parser.add_argument("--length", type=int, default=128, help="longer lines are cut (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="sequences per update (default: %(default)s)")
    parser.add_argument("--positions", choices=["absolute", "disentangled"], default="absolute")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="of ours (default: bf16 with --gpu, else fp32)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--rounds", type=int, default=9, help="blocks of each; the median counts (default: %(default)s)"
    )
    # the peer's length grouping sorts 50 batches at a time, longest first: a block is one such group
    parser.add_argument("--updates", type=int, default=50, help="updates per block (default: %(default)s)")
    parser.add_argument("--gpu", action="store_true", help="BERT-base on a GPU, bf16, compiled")
    parser.add_argument(
        "--patience", type=float, default=900, help="seconds for the first block, compiling too (default: %(default)s)"
    )
    parser.add_argument("--eager", action="store_true", help="with --gpu: ours is not compiled")
    parser.add_argument("--packed", action="store_true", help="every sequence has `length` tokens, as in packed text")
    parser.add_argument("--peak", type=float, default=989, help="with --gpu: the card's dense bf16 TFLOP/s (H100: 989)")
    args = parser.parse_args()
    args.precision = args.precision or ("bf16" if args.gpu else "fp32")
    if args.gpu:
        # of several GPUs the Trainer would use all, each with a batch of its own; MaskLab takes the first
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
        args.layers, args.hidden, args.vocab, args.batch = 12, 768, 30522, 256 if args.length <= 128 else 64
    encoder = Encoder(
        positions=args.positions, layers=args.layers, hidden=args.hidden, heads=max(1, args.hidden // 64),
        max_positions=max(args.length, 128), dropout=args.dropout,
    )  # fmt: skip
    machine = torch.cuda.get_device_name() if args.gpu else f"CPU {platform.machine()}, {args.threads} threads"
    print(
        f"{machine}; torch {torch.__version__}, transformers {transformers.__version__}; {args.positions} positions,"
        f" {args.layers} layers x {args.hidden}, vocabulary {args.vocab:,}, length {args.length}, batch {args.batch},"
        f" dropout {args.dropout}, {args.precision}",
        flush=True,
    )
    theirs = peers(args)
    found = measure({"MaskLab": Ours} | theirs, encoder, args)
    peak = args.peak * 1e12 if args.gpu else best_product(args.precision, args.threads)
    medians = {name: statistics.median(rates) for name, (rates, _, _) in found.items()}
    mean = int(real_lengths(np.linspace(0, 1, 1001), args.length, args.packed).mean())
    flops = training_flops(encoder, args.vocab, args.batch, mean, round(0.15 * mean)) / (args.batch * mean)
    for name, (rates, padding, memory) in found.items():
        rounds = ", ".join(f"{x:,.0f}" for x in rates)
        print(f"{name}: {medians[name]:,.0f} tokens/s (rounds: {rounds}; {padding:.1%} of the places are padding)")
        if args.gpu:
            print(f"  {memory / 2**30:.1f} GiB")
    if "MaskLab" not in found:
        raise SystemExit("no ratio: MaskLab was not ready in time (--patience)")
    print(f"MaskLab: {medians['MaskLab'] * flops / peak:.1%} of the peak, {peak / 1e12:.3g} TFLOP/s, by our FLOPs")
    theirs = [name for name in theirs if name in found]
    if not theirs:
        raise SystemExit("no ratio: no peer was ready in time (--patience)")
    for name in theirs:
        print(f"MaskLab / {name}: {medians['MaskLab'] / medians[name]:.2f}")
    print(f"ratio: {medians['MaskLab'] / max(medians[name] for name in theirs):.2f}")


if __name__ == "__main__":
    main()
