"""Reading, tokenising and writing a corpus of text: speed and peak memory, against `datasets` with the same tokenizer.

    python benchmarks/corpus_stream.py                                # 2 GB grown from generated English
    python benchmarks/corpus_stream.py --text wiki.txt --megabytes 200 --rounds 3

The text is read, filtered (5 characters, 5 words), 1,000 sequences held out for validation and as many for testing, and
written as token arrays. The peer reads it with `load_dataset("text")`, filters and tokenises it with `filter` and `map`
in as many processes, and keeps the ids as Arrow files. Both take turns. A text is grown by copies in which one word in
a hundred is made a new one, about as many as real text of that size has. Memory is the largest of any single process.
The last line is the speed of ours / peer.
"""

import argparse
import importlib.util
import itertools
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEGA = 1_000_000
NEW = 0.01  # share of the words of a copy that are new


def grow(source, megabytes: int, path: Path) -> None:
    """Write so many megabytes: the lines of the files `source`, or generated sentences, then copies of them."""
    lines, draw, written = list(seed_lines(source)), random.Random(1), 0
    with open(path, "w", encoding="utf-8") as file:
        for copy in itertools.count():
            for line in lines:
                text = changed(line, draw) if copy else line
                file.write(text + "\n")
                written += len(text.encode()) + 1
                if written >= megabytes * MEGA:
                    return


def seed_lines(source):
    if not source:
        from masklab.config.schema import EnglishCorpus
        from masklab.corpora import generate

        config = EnglishCorpus(kind="english", sentences=200_000, valid=1, test=1)
        yield from generate(config, "english", 1)["train"]["text"].to_pylist()
    for name in source:
        with open(name, encoding="utf-8") as file:
            yield from (line.rstrip("\n") for line in file if line.strip())


def changed(line, draw):
    words = line.split(" ")
    for _ in range(max(1, round(NEW * len(words))) if draw.random() < NEW * len(words) else 0):
        words[draw.randrange(len(words))] += "".join(draw.choices("aeioulnrst", k=5))
    return " ".join(words)


def ours(text: Path, tokenizer: Path, folder: Path, threads: int) -> int:
    from masklab.config.schema import TextCorpus
    from masklab.corpora import generate
    from masklab.files import write_table
    from masklab.texts import TextFile
    from masklab.tokenizers import load_tokenizer
    from masklab.tokens import write_tokens

    config, total = TextCorpus(kind="text", files=[str(text)]), 0
    (folder / "state").mkdir(parents=True)
    for split, table in generate(config, "c", 1, state_folder=folder / "state").items():
        write_table(table, folder / f"{split}.parquet")
    for split in ("train", "valid", "test"):
        source, place = TextFile(folder / f"{split}.parquet"), folder / "tokens"
        made = write_tokens(source, load_tokenizer(tokenizer), 128, place, split, threads=threads, mark="m")
        total += made["tokens"]
    return total


def peer(text: Path, tokenizer: Path, folder: Path, threads: int) -> int:
    import datasets

    from masklab.tokenizers import load_tokenizer

    loaded = load_tokenizer(tokenizer)

    def tokenise(batch):
        rows = loaded.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"ids": [row.ids[:126] for row in rows]}

    def long(batch):
        return [len(line.rstrip()) >= 5 and len(line.split()) >= 5 for line in batch["text"]]

    datasets.disable_progress_bars()
    data = datasets.load_dataset("text", data_files=str(text), cache_dir=str(folder), split="train")
    data = data.filter(long, batched=True, num_proc=threads)
    data = data.map(tokenise, batched=True, remove_columns=["text"], num_proc=threads)
    return sum(len(ids) for ids in data.with_format("numpy")[: min(len(data), 1000)]["ids"])


def measured(stage, text, tokenizer, folder, args) -> dict:
    """Seconds, seconds of processor time, and MiB at the most of one process, of a stage in a process of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, __file__, "--stage", stage, "--threads", str(args.threads)]
    command += [str(text), str(tokenizer), str(folder)]
    # One thread of the library for each of the peer's processes.
    rayon = {"RAYON_NUM_THREADS": str(args.threads if stage == "ours" else 1), "TOKENIZERS_PARALLELISM": "true"}
    environment = os.environ | rayon | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    shutil.rmtree(folder, ignore_errors=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_stage(args) -> None:
    """In a process of its own: do the stage, then say what it took."""
    began = time.perf_counter()
    text, tokenizer, folder = map(Path, args.paths)
    {"ours": ours, "peer": peer}[args.stage](text, tokenizer, folder, args.threads)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    facts = {
        "seconds": time.perf_counter() - began,
        "cpu": sum(one.ru_utime + one.ru_stime for one in used),
        "mib": max(one.ru_maxrss for one in used) / 1024,
    }
    print(json.dumps(facts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=2000, help="of text (default: %(default)s)")
    parser.add_argument("--text", action="append", default=[], help="file to grow the text from; may be repeated")
    parser.add_argument("--kind", choices=["unigram", "bpe", "wordpiece"], default="unigram")
    parser.add_argument("--vocab", type=int, default=8000, help="pieces (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="(default: all cores)")
    parser.add_argument("--rounds", type=int, default=9, help="(default: %(default)s)")
    parser.add_argument("--folder", help="where the text and what is made of it lie meanwhile")
    parser.add_argument("--stage", choices=["ours", "peer"], help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.stage:
        return run_stage(args)
    from masklab.subwords import train
    from masklab.tokenizers import save_tokenizer

    stages = ["ours", "peer"] if importlib.util.find_spec("datasets") else ["ours"]
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        text, tokenizer, folder = (Path(temporary, name) for name in ("text.txt", "tokenizer", "made"))
        grow(args.text, args.megabytes, text)
        with open(text, encoding="utf-8") as file:
            sample = random.Random(1).sample(list(itertools.islice(file, 200_000)), 20_000)
        save_tokenizer(train(sample, args.vocab, args.kind, rarest_character=20), tokenizer, 128)
        grown = ", ".join(Path(name).name for name in args.text) or "generated English"
        print(f"{args.megabytes} MB grown from {grown}; {args.kind}, {args.vocab:,} pieces; {args.threads} threads")
        found = {stage: [] for stage in stages}
        for _, stage in itertools.product(range(args.rounds), stages):
            found[stage].append(measured(stage, text, tokenizer, folder, args))
    for stage, name in zip(stages, ("MaskLab", "datasets"), strict=False):
        middle = {key: statistics.median(one[key] for one in found[stage]) for key in ("seconds", "cpu")}
        speed, peak = args.megabytes / middle["seconds"], max(one["mib"] for one in found[stage])
        print(
            f"{name}: {speed:.1f} MB/s, {speed / args.threads:.1f} MB/s per core, {args.megabytes / middle['cpu']:.1f}"
            f" MB per second of processor time, peak {peak:,.0f} MiB"
        )
    if len(stages) == 1:
        print("datasets is not installed (pip install datasets): there is no peer and no ratio")
        return
    pairs = zip(found["ours"], found["peer"], strict=True)
    print(f"ratio: {statistics.median(theirs['seconds'] / own['seconds'] for own, theirs in pairs):.2f}")


if __name__ == "__main__":
    main()
