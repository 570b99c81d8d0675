# tokens -> word embeddings for models to start from.


rule embeddings:
    input:
        unpack(needs("embeddings")),
    output:
        vectors=R("embeddings/{embeddings}/r{replicate}/vectors.npy"),
        facts=R("embeddings/{embeddings}/r{replicate}/embeddings.json"),
    log:
        R("logs/embeddings/{embeddings}/r{replicate}.log"),
    priority: BEFORE_PRETRAINING
    resources:
        **cluster.asks("embeddings"),
    params:
        config=settings_of("embeddings"),
        code=code_of("embeddings"),
        state=R("state/embeddings/{embeddings}/r{replicate}"),
    message:
        "embeddings {wildcards.embeddings} r{wildcards.replicate}"
    script:
        "../scripts/embeddings.py"
