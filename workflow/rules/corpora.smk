# corpus -> {train,valid,test}.parquet; corpus x tokenizer -> token arrays.


rule corpus:
    input:
        unpack(lambda w: paths.corpus_inputs(w.corpus)),
        sources=lambda w: paths.sources("corpora", w.corpus),
        code=code("corpus.py"),
    output:
        train=R("corpora/{corpus}/train.parquet"),
        valid=R("corpora/{corpus}/valid.parquet"),
        test=R("corpora/{corpus}/test.parquet"),
    log:
        R("logs/corpora/{corpus}.log"),
    threads: lambda w: settings.threads if settings.corpora[w.corpus].kind == "causal" else 1
    params:
        config=lambda w: paths.entity("corpora", w.corpus),
        state=R("state/corpora/{corpus}"),
    message:
        "corpus {wildcards.corpus}"
    script:
        "../scripts/corpus.py"


rule tokens:
    input:
        train=R("corpora/{corpus}/train.parquet"),
        valid=R("corpora/{corpus}/valid.parquet"),
        test=R("corpora/{corpus}/test.parquet"),
        tokenizer=R("tokenizers/{tokenizer}/tokenizer.json"),
        code=code("tokens.py"),
    output:
        meta=R("tokens/{corpus}/{tokenizer}/meta.json"),
        arrays=multiext(
            R("tokens/{corpus}/{tokenizer}/"),
            "train.ids.npy",
            "train.offsets.npy",
            "valid.ids.npy",
            "valid.offsets.npy",
            "test.ids.npy",
            "test.offsets.npy",
        ),
    log:
        R("logs/tokens/{corpus}/{tokenizer}.log"),
    params:
        config=lambda w: paths.encoding(w.tokenizer),
    message:
        "tokens of {wildcards.corpus} by tokenizer {wildcards.tokenizer}"
    script:
        "../scripts/tokens.py"
