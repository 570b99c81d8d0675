"""What a second phase costs: the time of an update with stored codes (MLSM + MLM), and with KD, over plain MLM.

    python benchmarks/phase2_overhead.py [--layers 4 --hidden 256 --atoms 2500 --steps 30]

Whole updates of the training loop (batch, masks, forward, backward, AdamW) on the same batches and masks, in turns, in
this process. The corpus is random: Zipfian tokens in lines as long as those of children's books and
dialogue; its codes are random too: their cost depends on their number alone. KD runs its teacher, a model
of the same shape, on the unmasked batch. A GPU computes in bf16. The last line is MLSM + MLM / MLM; KD / MLM stands
before it.
"""

import argparse
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--layers", type=int, default=4, help="blocks of the encoder, DeBERTa (default: %(default)s)")
parser.add_argument("--hidden", type=int, default=256, help="its width, 64 a head (default: %(default)s)")
parser.add_argument("--vocab", type=int, default=8192, help="pieces V (default: %(default)s)")
parser.add_argument("--length", type=int, default=128, help="longest sequence (default: %(default)s)")
parser.add_argument("--median", type=float, default=24, help="median length of a sequence (default: %(default)s)")
parser.add_argument("--batch-size", type=int, default=32, help="sequences an update (default: %(default)s)")
parser.add_argument("--atoms", type=int, default=2500, help="latent properties k (default: %(default)s)")
parser.add_argument("--entries", type=float, default=20, help="mean non-zeros of a code (default: %(default)s)")
parser.add_argument("--steps", type=int, default=30, help="updates timed of each objective (default: %(default)s)")
parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")

OBJECTIVES = {"MLM": {"mlm": 1}, "KD": {"kd": 1}, "MLSM+MLM": {"mlsm": 1, "mlm": 1}}


def make_corpus(folder, rng, args, sequences=2000):
    """Token arrays of the splits train and valid; returns the number of training tokens."""
    import numpy as np

    from masklab.files import write_json

    folder.mkdir()
    for split, count in (("valid", 100), ("train", sequences)):
        lengths = np.clip(rng.lognormal(np.log(args.median), 0.7, count).astype(int), 7, args.length) - 2
        share = 1 / np.arange(1, args.vocab - 4)
        ids = 5 + rng.choice(args.vocab - 5, lengths.sum(), p=share / share.sum())
        np.save(folder / f"{split}.ids.npy", ids.astype(np.int32))
        np.save(folder / f"{split}.offsets.npy", np.concatenate([[0], lengths]).cumsum())
    write_json({"vocab_size": args.vocab, "max_length": args.length}, folder / "meta.json")
    print(f"lengths: median {np.median(lengths) + 2:.0f}, mean {lengths.mean() + 2:.1f}, longest {lengths.max() + 2}")
    return int(lengths.sum())


def make_codes(folder, rng, rows, atoms, entries):
    """A random code for each token, with about `entries` non-zeros of `atoms`."""
    import numpy as np
    import torch

    from masklab.sparse.codes import write_codes
    from masklab.sparse.targets import Codes

    counts = np.clip(rng.poisson(entries, rows), 1, atoms)
    indptr = torch.from_numpy(np.concatenate([[0], counts]).cumsum())
    # a random start and strides of 1 to atoms / count: distinct atoms, ascending
    indices = [np.sort((rng.integers(atoms) + np.arange(n) * (atoms // n)) % atoms) for n in counts]
    values = torch.from_numpy(rng.exponential(size=counts.sum()).astype(np.float32))
    write_codes(folder, "train", [Codes(indptr, torch.from_numpy(np.concatenate(indices)), values)], atoms)


def make_learners(root, args):
    """One learner per objective, all on the same batches."""
    import numpy as np
    import torch

    from masklab.config.schema import Dictionary, Encoder, Model, Objective
    from masklab.models.checkpoint import save_checkpoint
    from masklab.models.encoder import MaskedLM
    from masklab.training.run import Run
    from masklab.training.stack import learner_of

    rng = np.random.default_rng(1)
    tokens = make_corpus(root / "tokens", rng, args)
    make_codes(root / "codes", rng, tokens, args.atoms, args.entries)
    encoder = Encoder(
        layers=args.layers, hidden=args.hidden, heads=max(1, args.hidden // 64), max_positions=args.length
    )
    teacher = MaskedLM(encoder, args.vocab, generator=torch.Generator().manual_seed(1))
    save_checkpoint(teacher, root / "teacher", metadata={})
    names = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "o", "dictionary": "d", "init": "m@1"}
    made = Dictionary(model="m@1", layer=args.layers, atoms=args.atoms)
    low = "bf16" if args.device == "cuda" else "fp32"
    model = Model(steps=10**6, batch_size=args.batch_size, precision=low, **names)
    files = {name: root / name for name in ("tokens", "tokenizer", "output", "state", "codes")}
    run = Run("m", 1, model, encoder, Objective(mlm=1), **files, init=root / "teacher", phase=1, device=args.device)
    learners = {}
    for name, weights in OBJECTIVES.items():
        changes = {"objective": Objective(**weights), "dictionary_config": made}
        learners[name] = learner_of(Run(**vars(run) | changes))
        learners[name].model.train()
    count = sum(p.numel() for p in learners["MLM"].model.parameters())
    print(
        f"parameters: {count:,} ({sum(p.numel() for p in learners['MLSM+MLM'].model.parameters()):,} with latent head)"
    )
    return learners


def main():
    args = parser.parse_args()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(args.threads))
    import torch

    torch.set_num_threads(args.threads)
    logging.disable(logging.INFO)
    print(", ".join(f"{key.replace('_', ' ')} {value}" for key, value in vars(args).items()))
    with tempfile.TemporaryDirectory() as folder:
        learners = make_learners(Path(folder), args)
        times = {name: [] for name in learners}
        masked = []
        for step in range(args.steps + 3):
            order = list(learners)
            for name in order[step % 3 :] + order[: step % 3]:
                start = time.perf_counter()
                row = learners[name].update(step)
                if args.device == "cuda":
                    torch.cuda.synchronize()
                times[name].append(time.perf_counter() - start)
            masked.append(row["masked"])
    print(f"masked tokens an update: {statistics.mean(masked):.0f}")
    times = {name: values[3:] for name, values in times.items()}  # without the first updates, which allocate
    for name, values in times.items():
        print(f"{name}: {1000 * statistics.median(values):.1f} ms an update (median of {len(values)})")

    def ratio(name):
        # per batch, so that neither batches of unlike length nor a busy moment weigh on one side
        return statistics.median(a / b for a, b in zip(times[name], times["MLM"], strict=True))

    print(f"KD / MLM: {ratio('KD'):.3f}")
    print(f"ratio: {ratio('MLSM+MLM'):.3f}")


if __name__ == "__main__":
    main()
