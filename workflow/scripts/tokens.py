"""Encode a corpus once into memory-mapped token arrays."""

from pathlib import Path

from _job import job

with job(snakemake):
    import pyarrow.parquet as pq

    from masklab.jobs.progress import Progress
    from masklab.symbols import COLUMN, read_header
    from masklab.tokenizers import load_tokenizer
    from masklab.tokens import write_symbol_tokens, write_tokens

    folder, max_length = Path(snakemake.output.meta).parent, snakemake.params.config["max_length"]
    tokenizer = load_tokenizer(Path(snakemake.input.tokenizer).parent)
    for split in ("train", "valid", "test"):
        path = snakemake.input[split]
        if facts := read_header(path):
            column, size = pq.read_table(path, columns=[COLUMN])[COLUMN], tokenizer.get_vocab_size()
            write_symbol_tokens(column, size, max_length, folder, split, facts)
        else:
            texts = pq.read_table(path, columns=["text"])["text"]
            write_tokens(texts, tokenizer, max_length, folder, split, Progress(f"tokens {split}", "sequences"))
