# corpus -> a Hugging Face tokenizer.


rule tokenizer:
    input:
        train=lambda w: R("corpora", settings.tokenizers[w.tokenizer].corpus, "train.parquet"),
        code=code("tokenizer.py"),
    output:
        tokenizer=R("tokenizers/{tokenizer}/tokenizer.json"),
        config=R("tokenizers/{tokenizer}/tokenizer_config.json"),
        special=R("tokenizers/{tokenizer}/special_tokens_map.json"),
    log:
        R("logs/tokenizers/{tokenizer}.log"),
    params:
        config=lambda w: paths.tokenizer(w.tokenizer),
    message:
        "tokenizer {wildcards.tokenizer}"
    script:
        "../scripts/tokenizer.py"
