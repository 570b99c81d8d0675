"""Element-wise work fused by torch.compile on a CPU: time of an update of ours over that of the compiled one.

    python benchmarks/compiled.py [--layers 4 --hidden 256 --steps 30 --precision fp32]

The same recipe with `compile: true` and without, whole updates of the training loop on the same batches, in turns, in
this process; a C++ compiler has to be there. The first updates of the compiled one, which compile a graph for the
widths of batches that come, are timed apart. The last line is ours / compiled: above 1, compiling would pay.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from phase2_overhead import make_corpus

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--layers", type=int, default=4, help="blocks of the encoder (default: %(default)s)")
parser.add_argument("--hidden", type=int, default=256, help="its width, 64 a head (default: %(default)s)")
parser.add_argument("--vocab", type=int, default=8192, help="pieces (default: %(default)s)")
parser.add_argument("--length", type=int, default=128, help="longest sequence (default: %(default)s)")
parser.add_argument("--median", type=float, default=24, help="median length of a sequence (default: %(default)s)")
parser.add_argument("--batch-size", type=int, default=32, help="sequences an update (default: %(default)s)")
parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
parser.add_argument("--steps", type=int, default=30, help="updates timed of each (default: %(default)s)")
parser.add_argument("--before", type=int, default=40, help="updates before these (default: %(default)s)")
parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")


def learners_of(root, args) -> dict:
    """{how: learner} of one recipe, on the same batches."""
    import numpy as np

    from masklab.config.schema import Encoder, Model, Objective
    from masklab.training.run import Run
    from masklab.training.stack import learner_of

    make_corpus(root / "tokens", np.random.default_rng(1), args)
    heads = max(1, args.hidden // 64)
    shape = {"layers": args.layers, "hidden": args.hidden, "heads": heads, "max_positions": args.length}
    encoder = Encoder(positions="absolute", **shape)
    learners = {}
    for how in ("ours", "compiled"):
        model = Model(
            corpus="c", tokenizer="t", encoder="e", objective="o", steps=10**6, batch_size=args.batch_size,
            precision=args.precision, compile=how == "compiled",
        )  # fmt: skip
        files = {name: root / name for name in ("tokens", "tokenizer", "output", "state")}
        learners[how] = learner_of(Run("m", 1, model, encoder, Objective(mlm=1), device="cpu", **files))
        learners[how].model.train()
    return learners


def main():
    args = parser.parse_args()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(args.threads))
    import torch

    from masklab.inside_libc import keep_freed_memory

    torch.set_num_threads(args.threads)
    keep_freed_memory()
    print(", ".join(f"{key.replace('_', ' ')} {value}" for key, value in vars(args).items()))
    with tempfile.TemporaryDirectory() as folder:
        learners = learners_of(Path(folder), args)
        times = {how: [] for how in learners}
        for step in range(args.before + args.steps):
            for how in sorted(learners, reverse=bool(step % 2)):
                start = time.perf_counter()
                learners[how].update(step)
                times[how].append(time.perf_counter() - start)
    for how, values in times.items():
        first, then = values[: args.before], values[args.before :]
        print(f"{how}: {1000 * statistics.median(then):.1f} ms an update; the first {args.before}: {sum(first):.0f} s")
    pairs = zip(times["ours"][args.before :], times["compiled"][args.before :], strict=True)
    print(f"ratio: {statistics.median(ours / compiled for ours, compiled in pairs):.2f}")


if __name__ == "__main__":
    main()
