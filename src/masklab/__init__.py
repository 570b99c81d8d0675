"""MaskLab: the workbench for masked-language-model pre-training research.

The library knows nothing of Snakemake. In a notebook `import masklab` offers what `masklab.notebook` has:
`load_model`, `load_tokenizer`, `fill_mask`, `pseudo_log_likelihood`, `hidden_states`, `measure`, `load_scores`,
`load_facts`, `load_claims`, `read_config`. Each is imported when it is first asked for, torch and pandas with it.
"""

__version__ = "0.1.0"
NOTEBOOK = (
    "fill_mask", "hidden_states", "load_claims", "load_facts", "load_model", "load_scores", "load_tokenizer", "measure",
    "pseudo_log_likelihood", "read_config",
)  # fmt: skip


def __getattr__(name):
    if name not in NOTEBOOK:
        raise AttributeError(f"module 'masklab' has no attribute {name!r}")
    from masklab import notebook

    return getattr(notebook, name)


def __dir__():
    return [*globals(), *NOTEBOOK]
