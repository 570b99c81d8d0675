# tokens -> word embeddings for models to start from.


rule embeddings:
    input:
        tokens=lambda w: R(
            "tokens",
            settings.embeddings[w.embeddings].corpus,
            settings.embeddings[w.embeddings].tokenizer,
            "meta.json",
        ),
        code=code("embeddings.py"),
    output:
        vectors=R("embeddings/{embeddings}/vectors.npy"),
        facts=R("embeddings/{embeddings}/embeddings.json"),
    log:
        R("logs/embeddings/{embeddings}.log"),
    params:
        config=lambda w: paths.embeddings(w.embeddings),
    message:
        "embeddings {wildcards.embeddings}"
    script:
        "../scripts/embeddings.py"
