# corpus -> {train,valid,test}.parquet; corpus x tokenizer -> token arrays.


rule corpus:
    input:
        unpack(needs("corpus")),
    output:
        train=R("corpora/{corpus}/train.parquet"),
        valid=R("corpora/{corpus}/valid.parquet"),
        test=R("corpora/{corpus}/test.parquet"),
    log:
        R("logs/corpora/{corpus}.log"),
    priority: BEFORE_PRETRAINING
    threads: lambda w: settings.threads if paths.is_causal(w.corpus) else 1
    resources:
        **cluster.asks("corpus", cluster.sort_of_corpus),
        gpu=lambda w: cluster.gpus() if paths.is_causal(w.corpus) else None,
        cpus_per_task=lambda w: settings.threads if paths.is_causal(w.corpus) else 1,
    params:
        config=settings_of("corpus"),
        code=code_of("corpus"),
        sources=sources_of("corpus"),
        state=lambda w: R("state/corpora", w.corpus) if paths.is_long(w.corpus) else None,
    message:
        "corpus {wildcards.corpus}"
    script:
        "../scripts/corpus.py"


rule tokens:
    input:
        unpack(needs("tokens")),
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
    priority: BEFORE_PRETRAINING
    threads: settings.threads
    resources:
        **cluster.asks("tokens"),
        cpus_per_task=settings.threads,
    params:
        config=settings_of("tokens"),
        code=code_of("tokens"),
        state=R("state/tokens/{corpus}/{tokenizer}"),
    message:
        "tokens of {wildcards.corpus} by tokenizer {wildcards.tokenizer}"
    script:
        "../scripts/tokens.py"
