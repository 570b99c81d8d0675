"""Train a tokenizer on a corpus."""

from pathlib import Path

from _job import job

with job(snakemake):
    import pyarrow.parquet as pq

    from masklab.config.schema import Tokenizer
    from masklab.tokenizers import save_tokenizer, train_unigram

    config = Tokenizer(**snakemake.params.config)
    texts = pq.read_table(snakemake.input.train, columns=["text"])["text"]
    tokenizer = train_unigram((text.as_py() for text in texts), config.vocab_size, config.lowercase)
    save_tokenizer(tokenizer, Path(snakemake.output.tokenizer).parent, config.max_length)
