"""Encode a corpus once into memory-mapped token arrays; resumes a killed job."""

from pathlib import Path

from _job import job

with job(snakemake):
    import os

    import pyarrow.parquet as pq

    from masklab.files import fingerprint, settle, sha256
    from masklab.jobs.progress import Progress
    from masklab.jobs.state import done, locked
    from masklab.jobs.store import contents
    from masklab.symbols import COLUMN, read_header
    from masklab.texts import TextFile
    from masklab.token_writer import move
    from masklab.tokenizers import load_tokenizer
    from masklab.tokens import write_symbol_tokens, write_tokens

    folder, max_length = Path(snakemake.output.meta).parent, snakemake.params.config["max_length"]
    state, threads = Path(snakemake.params.state), int(os.environ["RAYON_NUM_THREADS"])
    tokenizer = load_tokenizer(Path(snakemake.input.tokenizer).parent)
    with locked(state):
        facts = {split: read_header(snakemake.input[split]) for split in ("train", "valid", "test")}
        for split, of_symbols in facts.items():
            path = snakemake.input[split]
            if of_symbols:
                column, size = pq.read_table(path, columns=[COLUMN])[COLUMN], tokenizer.get_vocab_size()
                write_symbol_tokens(column, size, max_length, folder, split, of_symbols)
            else:
                mark = fingerprint([max_length, sha256(snakemake.input.tokenizer), contents(path)])
                progress = Progress(f"tokens {split}", "sequences", folder=state)
                write_tokens(TextFile(path), tokenizer, max_length, state / "arrays", split, progress, threads, mark)
        if not all(facts.values()):
            move(state / "arrays", folder)
        settle(*snakemake.output)
        done(state)
