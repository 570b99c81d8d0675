"""Replicates that train side by side: seconds of k as one stacked model / seconds of one alone with the ordinary loop.

    python benchmarks/replicates.py                             # 5 of 2 layers x 64, as the default run's encoders are
    python benchmarks/replicates.py --layers 4 --hidden 128
    python benchmarks/replicates.py --precision bf16            # both in bf16; the ordinary loop under autocast
    python benchmarks/replicates.py --by-hand                   # one alone as the workflow trains it: a stack of one
    python benchmarks/replicates.py --positions disentangled --copies 3
    python benchmarks/replicates.py --lstm --layers 1 --batch 128 --length 10

Every replicate has its own weights, batches, masks and dropout. They train on sequences as long as lines of real
English text, cut to `--length`, with 15 % of the tokens masked, dropout 0.1 and gradients clipped to norm 1; making
batches counts. In each round every replicate makes a block of updates by itself, one after the other, and then all of
them make the same updates as one. Time is that of the processor, one thread. The last line is all together / one alone;
before it stands all together / one after the other.
"""

import argparse
import dataclasses
import gc
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch
from pretraining_throughput import write_corpus

from masklab.config.schema import Encoder, Model, Objective
from masklab.inside_libc import keep_freed_memory
from masklab.rng import replicate_seed
from masklab.training.learner import Learner
from masklab.training.run import Run
from masklab.training.stack import Alone, Stack


def learners(run, copies, kind=Learner):
    """A fresh learner for each replicate."""
    made = []
    for k in range(1, copies + 1):
        made.append(kind(dataclasses.replace(run, seed=replicate_seed(1, k), replicate=k)))
        made[-1].model.train()
    return made


def timed(action) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=64, help="(default: %(default)s)")
    parser.add_argument("--heads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--positions", default="absolute", help="(default: %(default)s)")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="(default: %(default)s)")
    parser.add_argument("--by-hand", action="store_true", help="one alone has gradients by hand, too")
    parser.add_argument("--lstm", action="store_true", help="of LSTMs")
    parser.add_argument("--copies", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="sequences (default: %(default)s)")
    parser.add_argument("--length", type=int, default=40, help="longest sequence (default: %(default)s)")
    parser.add_argument("--vocab", type=int, default=2000, help="(default: %(default)s)")
    parser.add_argument("--updates", type=int, default=20, help="of a block (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="(default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as every job of the workflow does, garbage too
    gc.set_threshold(50_000)
    gc.collect()
    gc.freeze()
    shape = {"layers": args.layers, "hidden": args.hidden, "heads": args.heads, "max_positions": args.length}
    kind = {"kind": "lstm", "norm": "pre"} if args.lstm else {}
    encoder = Encoder(positions=args.positions, **shape, **kind)
    made_of = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "o", "precision": args.precision}
    optimiser = {"lr": 1e-3, "warmup": 0.0}
    model = Model(**made_of, steps=10**6, batch_size=args.batch, optimiser=optimiser)
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, one thread")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write_corpus(folder, args.vocab, args.length, packed=False)
        run = Run("benchmark", 1, model, encoder, Objective(mlm=1), folder, folder, folder, folder)
        alone = learners(run, args.copies, Alone if args.by_hand else Learner)
        stack = Stack(learners(run, args.copies))
        seconds = {"alone": [], "together": []}
        for number in range(args.rounds + 1):
            steps = range(number * args.updates, (number + 1) * args.updates)

            def one(learner, steps=steps):
                for step in steps:
                    learner.update(step)

            def all_of_them(steps=steps):
                for step in steps:
                    stack.apply(stack.gradients(step))

            each = [timed(lambda learner=learner: one(learner)) for learner in alone]
            together = timed(all_of_them)
            if number:  # the first round warms up
                seconds["alone"].append(sum(each) / args.copies)
                seconds["together"].append(together)
                latest = ", ".join(f"{name} {1e3 * v[-1] / args.updates:.1f} ms" for name, v in seconds.items())
                print(f"  round {number}: an update {latest}", flush=True)
        apart = max(
            float((a - b).detach().abs().max())
            for one, other in zip(alone, stack.learners, strict=True)
            for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True)
        )
    one, several = (statistics.median(values) for values in seconds.values())
    ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
    of = f"{args.layers} x {args.hidden} ({encoder.kind}, positions {args.positions}, {args.precision})"
    print(
        f"{args.copies} replicates of {of}, batch {args.batch}, at most {args.length} tokens, vocabulary {args.vocab}:"
        f" an update of one alone {1e3 * one / args.updates:.1f} ms, of all together {1e3 * several / args.updates:.1f}"
        f" ms; rounds {min(ratios):.2f} to {max(ratios):.2f}; weights differ by {apart:.0e} at most"
    )
    print(f"all together / one after the other: {several / one / args.copies:.3f}")
    print(f"ratio: {several / one:.2f}")


if __name__ == "__main__":
    main()
