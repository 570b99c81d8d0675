# corpus -> a Hugging Face tokenizer.


rule tokenizer:
    input:
        unpack(needs("tokenizer")),
    output:
        tokenizer=R("tokenizers/{tokenizer}/tokenizer.json"),
        config=R("tokenizers/{tokenizer}/tokenizer_config.json"),
        special=R("tokenizers/{tokenizer}/special_tokens_map.json"),
    log:
        R("logs/tokenizers/{tokenizer}.log"),
    priority: BEFORE_PRETRAINING
    resources:
        **cluster.asks("tokenizer"),
    params:
        config=settings_of("tokenizer"),
        code=code_of("tokenizer"),
        sources=sources_of("tokenizer"),
    message:
        "tokenizer {wildcards.tokenizer}"
    script:
        "../scripts/tokenizer.py"
