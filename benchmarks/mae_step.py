"""What the masked autoencoder costs: the time of its update over plain MLM's, against the ratio of their FLOPs.

    python benchmarks/mae_step.py [--layers 12 --hidden 256 --decoder-layers 4 --length 128 --steps 20]
    python benchmarks/mae_step.py --base              # MAE-LM base: 12 x 768, length 512, vocabulary 32,768

Whole updates of the training loop (batch, masks, forward, backward, AdamW) with equal encoders, relative positions,
dropout and masks, in turns, in this process. Every sequence has `length` tokens, of which 15 % are masked, as the
released code of MAE-LM draws them. FLOPs are those of matrix products (masklab.models.flops), in both models with the
last layer at masked positions alone. The last line is the ratio of times; that of FLOPs stands before it.
"""

import argparse
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--layers", type=int, default=12, help="blocks of the encoder (default: %(default)s)")
parser.add_argument("--hidden", type=int, default=256, help="its width, 64 a head (default: %(default)s)")
parser.add_argument("--decoder-layers", type=int, default=4, help="blocks of the decoder (default: %(default)s)")
parser.add_argument("--vocab", type=int, default=8192, help="pieces V (default: %(default)s)")
parser.add_argument("--length", type=int, default=128, help="tokens of every sequence (default: %(default)s)")
parser.add_argument("--batch-size", type=int, default=16, help="sequences an update (default: %(default)s)")
parser.add_argument("--positions", choices=["relative", "absolute"], default="relative")
parser.add_argument("--steps", type=int, default=20, help="updates timed of each (default: %(default)s)")
parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
parser.add_argument("--base", action="store_true", help="the sizes of MAE-LM base, 2 sequences an update on a CPU")


def make_learners(root, args):
    """Plain MLM and the masked autoencoder on the same random tokens."""
    import numpy as np

    from masklab.config.schema import Decoder, Encoder, Masking, Model, Objective
    from masklab.files import write_json
    from masklab.training.run import Run
    from masklab.training.stack import learner_of

    rng, tokens = np.random.default_rng(1), root / "tokens"
    tokens.mkdir()
    for split, count in (("valid", args.batch_size), ("train", 40 * args.batch_size)):
        np.save(tokens / f"{split}.ids.npy", rng.integers(5, args.vocab, count * (args.length - 2), dtype=np.int32))
        np.save(tokens / f"{split}.offsets.npy", np.arange(count + 1) * (args.length - 2))
    write_json({"vocab_size": args.vocab, "max_length": args.length}, tokens / "meta.json")
    encoder = Encoder(
        layers=args.layers, hidden=args.hidden, heads=max(1, args.hidden // 64), max_positions=args.length,
        positions=args.positions,
    )  # fmt: skip
    model = Model(
        corpus="c", tokenizer="t", encoder="e", objective="o", steps=10**6, batch_size=args.batch_size,
        masking=Masking(count="rounded", specials=True), precision="bf16" if args.device == "cuda" else "fp32",
    )  # fmt: skip
    folders = {name: root / name for name in ("tokenizer", "output", "state")}
    forms = {
        "MLM": (encoder, Objective(mlm=1)),
        "MAE": (encoder.model_copy(update={"decoder": Decoder(layers=args.decoder_layers)}), Objective(mae=1)),
    }
    found = {}
    for name, (form, objective) in forms.items():
        found[name] = learner_of(Run("m", 1, model, form, objective, tokens, **folders, device=args.device))
        found[name].model.train()
    return found


def main():
    args = parser.parse_args()
    if args.base:
        args.hidden, args.length, args.vocab, args.batch_size = 768, 512, 32768, 2 if args.device == "cpu" else 64
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(args.threads))
    import torch

    from masklab.inside_libc import keep_freed_memory
    from masklab.models.flops import training_flops

    keep_freed_memory()  # as every job of the workflow does
    torch.set_num_threads(args.threads)
    logging.disable(logging.INFO)
    print(", ".join(f"{key.replace('_', ' ')} {value}" for key, value in vars(args).items()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        learners = make_learners(Path(folder), args)
        times = {name: [] for name in learners}
        for step in range(args.steps + 2):
            for name in list(learners)[:: 1 if step % 2 else -1]:
                if args.device == "cuda":
                    torch.cuda.synchronize()
                start = time.perf_counter()
                learners[name].update(step)
                if args.device == "cuda":
                    torch.cuda.synchronize()
                times[name].append(time.perf_counter() - start)
    times = {name: values[2:] for name, values in times.items()}  # without the first updates, which allocate
    for name, values in times.items():
        print(f"{name}: {1000 * statistics.median(values):.1f} ms an update (median of {len(values)})")
    shape = args.vocab, args.batch_size, args.length, round(0.15 * args.length)
    flops = {name: training_flops(learner.run.encoder, *shape) for name, learner in learners.items()}
    expected = flops["MAE"] / flops["MLM"]
    # per batch, so that a busy moment weighs on neither side
    ratio = statistics.median(a / b for a, b in zip(times["MAE"], times["MLM"], strict=True))
    print(f"FLOPs, MAE / MLM: {expected:.3f}; time is {ratio / expected - 1:+.1%} of that")
    print(f"ratio: {ratio:.3f}")


if __name__ == "__main__":
    main()
