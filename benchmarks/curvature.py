"""Trace of the Hessian at saturation: one backward pass per sentence and drawn label, over ours.

    python benchmarks/curvature.py [--kind lstm] [--layers 2 --hidden 96] [--steps 1500] [--rounds 6]

A model is trained on generated sentences (of Markov chains for transformers, of a hidden Markov model for LSTMs); then
every estimator measures this one model, in turns. What counts is the time to a standard error of 5 %: (spread of an
estimate / mean / 0.05)^2 times the seconds of an estimate, CPU seconds where one thread works. The peer is the
paper's estimator as it reads (Liu et al. 2023, appendix B): draw a sentence, a position and a label from the model,
take the squared norm of the gradient of its log-probability. With more labels per sentence (the paper: 50) it does
worse per second, which is shown too. Ours is what the `curvature` probe runs. Estimates of one sentence and one label
have one law whoever computes them: their spread, which has a long tail, is taken from all of them. All estimators must
agree within four standard errors. The gain falls with the size of the model: what a loop loses is the start of
operations on one sentence. The default is the middle size of `implicit-bias` on a CPU. Ends in `ratio:`, the peer's
seconds over ours.
"""

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--kind", choices=["transformer", "lstm"], default="transformer", help="(default: %(default)s)")
parser.add_argument("--layers", type=int, default=2, help="blocks of the encoder (default: %(default)s)")
parser.add_argument("--hidden", type=int, default=48, help="its width, 16 a head (default: %(default)s)")
parser.add_argument("--steps", type=int, default=1500, help="updates of training (default: %(default)s)")
parser.add_argument("--rounds", type=int, default=6, help="turns of every estimator (default: %(default)s)")
parser.add_argument("--seconds", type=float, default=1.5, help="of an estimator's turn (default: %(default)s)")
parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
PEER, SAME, OURS = "loop", "per sentence, labels, 256", "per sentence, signs, 256"
DRAWN = 2048  # sentences that ours draws together and sorts by length


def trained(root, args):
    """(token store of the test split, model)."""
    from masklab import symbols
    from masklab.config.schema import (
        Chains,
        Encoder,
        HiddenMarkov,
        HmmCorpus,
        LossProbe,
        MarkovCorpus,
        Masking,
        Model,
        Objective,
    )
    from masklab.corpora import generate
    from masklab.files import write_table
    from masklab.models.checkpoint import load_checkpoint
    from masklab.probes import Context, run
    from masklab.tokenizers import save_tokenizer, symbol_tokenizer
    from masklab.tokens import TokenStore, write_symbol_tokens
    from masklab.training.loop import Run, train

    chains, longest = Chains(synsets=50, edges="released", main=0.9), 22
    corpus = MarkovCorpus(kind="markov", chains=chains, distributional=True, sequences=20_000, valid=200, test=2000)
    if args.kind == "lstm":
        corpus, longest = HmmCorpus(kind="hmm", hmm=HiddenMarkov(), sequences=100_000, valid=500, test=5000), 18
    for split, table in generate(corpus, corpus.kind, 1).items():
        write_table(table, root / f"{split}.parquet")
        facts = symbols.read_header(root / f"{split}.parquet")
        size = len(facts["names"]) + symbols.FIRST
        write_symbol_tokens(table["symbols"], size, longest, root / "tokens", split, facts)
    save_tokenizer(symbol_tokenizer(facts["names"]), root / "tokenizer", longest)
    encoder = Encoder(kind=args.kind, positions="absolute", norm="pre", layers=args.layers, hidden=args.hidden,
                      heads=max(1, args.hidden // 16), max_positions=longest, dropout=0.0)  # fmt: skip
    model = Model(corpus=corpus.kind, tokenizer="t", encoder="e", objective="o", steps=args.steps, batch_size=128,
                  masking=Masking(count="bernoulli"), optimiser={"lr": 4e-3, "warmup": 0.06},
                  checkpoints=[args.steps])  # fmt: skip
    train(Run(name="m", seed=1, model=model, encoder=encoder, objective=Objective(mlm=1), tokens=root / "tokens",
              tokenizer=root / "tokenizer", output=root / "m", state=root / "state"))  # fmt: skip
    folder = root / "m" / f"step-{args.steps}"
    model, store = load_checkpoint(folder, args.device).eval(), TokenStore(root / "tokens", "test")
    print(f"{args.kind}, {args.layers} x {args.hidden}, {sum(p.numel() for p in model.parameters()):,} parameters, "
          f"{args.steps} updates on {corpus.kind} sentences of {store.lengths.mean():.1f} tokens")  # fmt: skip
    probe = LossProbe(kind="loss", sequences=2000, masks="one")
    rows = run(Context(probe, folder, tokens=root / "tokens"))
    found = {row["metric"]: row["value"] for row in rows if "value" in row}
    floor = found.get("floor", facts.get("mlm_entropy"))
    print(f"loss {found['loss']:.3f} +- {found['loss_se']:.3f} nats per masked token, of a floor of {floor:.3f}")
    return store, model


def candidates(store, model, device):
    """Estimator -> function of nothing that returns the estimates of one call, [n], independent of each other."""
    import numpy as np
    import torch

    from masklab.curvature.per_example import SquaredNorms
    from masklab.curvature.trace import hide, label_scores, random_signs, sign_scores, summed_norms

    rng, size = np.random.default_rng(1), model.vocab_size

    def sentences(count, draw=None):
        """Batches of `count` masked sentences of like length, of `draw` drawn together; without it one batch."""
        rows = rng.integers(len(store), size=draw or count)
        rows = rows[np.argsort(store.lengths[rows])] if draw else rows
        for start in range(0, len(rows), count):
            ids, lengths = store.batch(rows[start : start + count])
            ids, at = hide(ids, torch.from_numpy(rng.integers(1, lengths.numpy() - 1)))
            yield ids.to(device), lengths.to(device), at.to(device)

    def labels(count):
        return torch.from_numpy(rng.random(count)).to(device)

    def signs(count):
        return random_signs(rng, count, size).to(device)

    def loop(draws=1):
        logits = model(*next(sentences(1))).logits
        parameters, norms = list(model.parameters()), []
        for draw in range(draws):
            score = label_scores(logits.detach(), labels(1))
            gradients = torch.autograd.grad(logits, parameters, score, retain_graph=draw < draws - 1)
            norms.append(float(sum(gradient.square().sum() for gradient in gradients)))
        return np.array([np.mean(norms)])

    def summed(count, scores, draw):
        return summed_norms(model, *next(sentences(count)), draw(count), scores).sum(-1).numpy()

    def single(count, scores, draw, draws=1):
        found = []
        with SquaredNorms(model) as norms:
            for batch in sentences(count, DRAWN):
                drawn = [draw(count) for _ in range(draws)]
                found.append(norms(*batch, lambda logits, d=drawn: [scores(logits, each) for each in d]).mean(0))
        return torch.cat(found).sum(-1).double().cpu().numpy()

    found = {PEER: loop, "loop, 50 labels a sentence": lambda: loop(50)}
    for count in (8, 64):
        for name, scores, draw in (("labels", label_scores, labels), ("signs", sign_scores, signs)):
            found[f"sum of {count}, {name}"] = lambda c=count, s=scores, d=draw: summed(c, s, d)
    found[SAME] = lambda: single(256, label_scores, labels)
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
        clock = time.process_time if args.device == "cpu" and args.threads == 1 else time.perf_counter
        for _ in range(args.rounds):
            for name, estimate in tried.items():
                begin = clock()
                while clock() - begin < args.seconds:
                    start = clock()
                    values[name].append(estimate())
                    if args.device == "cuda":
                        torch.cuda.synchronize()
                    seconds[name].append((clock() - start) / len(values[name][-1]))
    print(f"{args.rounds} turns of {args.seconds} s each, {args.threads} thread(s), {args.device}; median times")
    print(f"{'estimator':32}{'trace':>9}{'se':>8}{'spread':>8}{'us each':>10}{'se x sqrt(s)':>14}{'s to 5 %':>10}")
    times, means = {}, {}
    for name in tried:
        found, each = np.concatenate(values[name]), float(np.median(seconds[name]))
        sample = np.concatenate(values[PEER] + values[SAME]) if name in (PEER, SAME) else found
        mean, spread = found.mean(), sample.std(ddof=1) / sample.mean()
        means[name] = mean, spread * mean / len(found) ** 0.5
        times[name] = (spread / 0.05) ** 2 * each
        print(f"{name:32}{mean:9.2f}{means[name][1]:8.2f}{spread:8.2f}{1e6 * each:10.0f}"
              f"{spread * each**0.5:14.4f}{times[name]:10.3f}")  # fmt: skip
    for name, (mean, error) in means.items():
        mean_ours, error_ours = means[OURS]
        assert abs(mean - mean_ours) < 4 * np.hypot(error, error_ours), f"{name} and {OURS} do not agree"
    print(f"ratio: {times[PEER] / times[OURS]:.1f}")


if __name__ == "__main__":
    main()
