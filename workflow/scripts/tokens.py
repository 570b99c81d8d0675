"""Encode a corpus once into memory-mapped token arrays."""

from pathlib import Path

from _job import job

with job(snakemake):
    import pyarrow.parquet as pq

    from masklab.progress import Progress
    from masklab.tokenizers import load_tokenizer
    from masklab.tokens import write_tokens

    folder = Path(snakemake.output.meta).parent
    tokenizer = load_tokenizer(Path(snakemake.input.tokenizer).parent)
    for split in ("train", "valid", "test"):
        texts = pq.read_table(snakemake.input[split], columns=["text"])["text"]
        progress = Progress(f"tokens {split}", "sequences")
        write_tokens(texts, tokenizer, snakemake.params.max_length, folder, split, progress)
