"""Trace of the Hessian at saturation: one backward pass per sentence and drawn label, over ours.

    python benchmarks/curvature.py [--kind lstm] [--hidden 128 --layers 4] [--rounds 5]

A model is trained on a generated corpus until its loss is near the floor's; then every estimator measures the same
model in turns. What counts is the time to a standard error of 5 %: (spread of an estimate / mean / 0.05)^2 times the
seconds of an estimate. The peer is the paper's estimator as it reads (Liu et al. 2023, appendix B): draw a sentence, a
position and a label from the model, take the squared norm of the gradient of its log-probability. With more labels
per sentence (the paper: 50) it does worse per second, which is shown too. Ours is what the `curvature` probe runs.
Estimates must agree within four standard errors. Ends in `ratio:`, the peer's seconds over ours.
"""

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--kind", choices=["transformer", "lstm"], default="transformer", help="(default: %(default)s)")
parser.add_argument("--layers", type=int, default=4, help="blocks of the encoder (default: %(default)s)")
parser.add_argument("--hidden", type=int, default=64, help="its width, 32 a head (default: %(default)s)")
parser.add_argument("--steps", type=int, default=1500, help="updates of training (default: %(default)s)")
parser.add_argument("--rounds", type=int, default=6, help="turns of every estimator (default: %(default)s)")
parser.add_argument("--seconds", type=float, default=1.5, help="of an estimator's turn (default: %(default)s)")
parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
PEER, OURS = "loop", "per sentence, signs, 256"


def trained(root, args):
    """(token store of the test split, model) of a hidden Markov model's sentences."""
    from masklab.config.schema import Encoder, HiddenMarkov, HmmCorpus, Model, Objective
    from masklab.corpora import generate, symbols
    from masklab.files import read_json, write_table
    from masklab.models.checkpoint import load_checkpoint
    from masklab.tokenizers import save_tokenizer, symbol_tokenizer
    from masklab.tokens import TokenStore, write_symbol_tokens
    from masklab.training.loop import Run, train

    corpus = HmmCorpus(kind="hmm", hmm=HiddenMarkov(), sequences=100_000, valid=500, test=5000)
    for split, table in generate(corpus, "hmm", 1).items():
        write_table(table, root / f"{split}.parquet")
        facts = symbols.read_facts(root / f"{split}.parquet")
        size = len(facts["names"]) + symbols.FIRST
        write_symbol_tokens(table["symbols"], size, corpus.length + 2, root / "tokens", split, facts)
    save_tokenizer(symbol_tokenizer(facts["names"]), root / "tokenizer", corpus.length + 2)
    encoder = Encoder(kind=args.kind, positions="absolute", norm="pre", layers=args.layers, hidden=args.hidden,
                      heads=max(1, args.hidden // 32), max_positions=corpus.length + 2, dropout=0.0)  # fmt: skip
    model = Model(corpus="hmm", tokenizer="t", encoder="e", objective="o", steps=args.steps, batch_size=128,
                  optimiser={"lr": 2e-3, "warmup": 0.06}, checkpoints=[args.steps])  # fmt: skip
    train(Run(name="m", seed=1, model=model, encoder=encoder, objective=Objective(mlm=1), tokens=root / "tokens",
              tokenizer=root / "tokenizer", output=root / "m", state=root / "state"))  # fmt: skip
    floor = read_json(root / "tokens" / "meta.json")["corpus"]["mlm_entropy"]
    model = load_checkpoint(root / "m" / f"step-{args.steps}", args.device).eval()
    print(f"{args.kind}, {args.layers} x {args.hidden}, {sum(p.numel() for p in model.parameters()):,} parameters; "
          f"floor of the loss {floor:.3f} nats")  # fmt: skip
    return TokenStore(root / "tokens", "test"), model


def candidates(store, model, device):
    """Estimator -> function of nothing that returns the estimates of one call, [n], independent of each other."""
    import numpy as np
    import torch

    from masklab.curvature.per_example import SquaredNorms
    from masklab.curvature.trace import hide, label_scores, random_signs, sign_scores, summed_norms

    rng, size = np.random.default_rng(1), model.vocab_size

    def sentences(count):
        ids, lengths = store.batch(rng.integers(len(store), size=count))
        ids, at = hide(ids, torch.from_numpy(rng.integers(1, lengths.numpy() - 1)))
        return ids.to(device), lengths.to(device), at.to(device)

    def labels(count):
        return torch.from_numpy(rng.random(count)).to(device)

    def signs(count):
        return random_signs(rng, count, size).to(device)

    def loop(draws=1):
        logits = model(*sentences(1)).logits
        parameters, norms = list(model.parameters()), []
        for draw in range(draws):
            score = label_scores(logits.detach(), labels(1))
            gradients = torch.autograd.grad(logits, parameters, score, retain_graph=draw < draws - 1)
            norms.append(sum(float(gradient.square().sum()) for gradient in gradients))
        return np.array([np.mean(norms)])

    def summed(count, scores, draw):
        return summed_norms(model, *sentences(count), draw(count), scores).sum(-1).numpy()

    def single(count, scores, draw, draws=1):
        with SquaredNorms(model) as norms:
            drawn = [draw(count) for _ in range(draws)]
            found = norms(*sentences(count), lambda logits: [scores(logits, each) for each in drawn])
        return found.mean(0).sum(-1).double().cpu().numpy()

    found = {PEER: loop, "loop, 50 labels a sentence": lambda: loop(50)}
    for count in (8, 64):
        for name, scores, draw in (("labels", label_scores, labels), ("signs", sign_scores, signs)):
            found[f"sum of {count}, {name}"] = lambda c=count, s=scores, d=draw: summed(c, s, d)
    found["per sentence, labels, 256"] = lambda: single(256, label_scores, labels)
    for count in (64, 256, 1024):
        found[f"per sentence, signs, {count}"] = lambda c=count: single(c, sign_scores, signs)
    found["per sentence, 4 x signs, 256"] = lambda: single(256, sign_scores, signs, 4)
    return found


def main():
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import numpy as np
    import torch

    torch.set_num_threads(args.threads)
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as root:
        store, model = trained(Path(root), args)
        tried = candidates(store, model, args.device)
        values, seconds = ({name: [] for name in tried} for _ in range(2))
        for estimate in tried.values():
            estimate()  # warm up
        for _ in range(args.rounds):
            for name, estimate in tried.items():
                begin = time.perf_counter()
                while time.perf_counter() - begin < args.seconds:
                    start = time.perf_counter()
                    values[name].append(estimate())
                    if args.device == "cuda":
                        torch.cuda.synchronize()
                    seconds[name].append((time.perf_counter() - start) / len(values[name][-1]))
    print(f"{args.rounds} turns of {args.seconds} s each, {args.threads} thread(s), {args.device}; median times")
    print(f"{'estimator':32}{'trace':>9}{'se':>8}{'spread':>8}{'us each':>10}{'se x sqrt(s)':>14}{'s to 5 %':>10}")
    times, means = {}, {}
    for name in tried:
        found, each = np.concatenate(values[name]), float(np.median(seconds[name]))
        mean, error, spread = found.mean(), found.std(ddof=1) / len(found) ** 0.5, found.std(ddof=1) / found.mean()
        times[name], means[name] = (spread / 0.05) ** 2 * each, (mean, error)
        print(f"{name:32}{mean:9.2f}{error:8.2f}{spread:8.2f}{1e6 * each:10.0f}"
              f"{spread * each**0.5:14.4f}{times[name]:10.3f}")  # fmt: skip
    for name, (mean, error) in means.items():
        mean_ours, error_ours = means[OURS]
        assert abs(mean - mean_ours) < 4 * np.hypot(error, error_ours), f"{name} and {OURS} do not agree"
    print(f"ratio: {times[PEER] / times[OURS]:.1f}")


if __name__ == "__main__":
    main()
