"""CBOW embeddings: ours against gensim's Word2Vec, one core, the same corpus and settings.

Needs gensim (`pip install gensim`), which the project itself does not. Ends in `ratio:`, gensim's seconds over ours.
Both must find the synonyms of a corpus with the distributional property.
"""

import argparse
import tempfile
import time

import numpy as np

from masklab.config.schema import Chains, Embeddings, MarkovCorpus
from masklab.corpora import generate
from masklab.embeddings import train
from masklab.tokens import TokenStore, write_symbol_tokens


def peer(store, config):
    """gensim's vectors [tokens, size], rows in order of the token ids."""
    from gensim.models import Word2Vec

    rows = np.split(np.asarray(store.ids), store.offsets[1:-1])
    sentences = [list(map(str, row)) for row in rows]
    model = Word2Vec(
        min_count=1,
        sample=0,
        workers=1,
        seed=1,
        vector_size=config.size,
        window=config.window,
        negative=config.negative,
        ns_exponent=config.exponent,
        alpha=config.lr,
        min_alpha=config.lr_end,
    )
    model.build_vocab(sentences)
    start = time.perf_counter()
    model.train(sentences, total_examples=len(sentences), epochs=config.epochs)
    seconds = time.perf_counter() - start
    return np.stack([model.wv[str(token)] for token in sorted(map(int, model.wv.index_to_key))]), seconds


def ours(store, config, vocab_size):
    start = time.perf_counter()
    vectors, _ = train(store, vocab_size, config, "benchmark", 1)
    return vectors[5:], time.perf_counter() - start


def found(vectors):
    """(mean cosine of a synset's two features, share of tokens whose nearest neighbour is the other one)."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, n = unit @ unit.T, len(unit) // 2
    pairs = cosines[np.arange(n), n + np.arange(n)].mean()
    np.fill_diagonal(cosines, -1)
    return pairs, (cosines.argmax(1) == (np.arange(2 * n) + n) % (2 * n)).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--synsets", type=int, default=200)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=1000, help="per chain")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved; the fastest of each counts")
    options = parser.parse_args()
    corpus = MarkovCorpus(kind="markov", chains=Chains(synsets=options.synsets, edges="released"), distributional=True,
                          sequences=options.sequences, valid=1, test=1, length=64)  # fmt: skip
    config = Embeddings(corpus="c", tokenizer="t", size=options.size, epochs=options.epochs)
    vocab_size = 2 * options.synsets + 5
    with tempfile.TemporaryDirectory() as folder:
        write_symbol_tokens(generate(corpus, "c", 1)["train"]["symbols"], vocab_size, 66, folder, "train")
        store = TokenStore(folder, "train")
        ours(store, config.model_copy(update={"epochs": 1}), vocab_size)  # compile
        times = {"ours": [], "gensim": []}
        for _ in range(options.rounds):
            for name, (vectors, seconds) in (
                ("ours", ours(store, config, vocab_size)),
                ("gensim", peer(store, config)),
            ):
                times[name].append(seconds)
                pairs, nearest = found(vectors)
                rate = len(store.ids) * options.epochs / seconds
                print(f"{name}: {seconds:.2f} s, {rate:,.0f} tokens/s; cosine {pairs:.3f}, nearest {nearest:.1%}")
    print(f"ratio: {min(times['gensim']) / min(times['ours']):.2f}")


if __name__ == "__main__":
    main()
