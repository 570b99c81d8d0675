"""A tiny random encoder-decoder of transformers with a tokenizer of whole words, saved to disk."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]


def save(folder, words, seed, forced_bos=None):
    """Write it to `folder`; forced_bos: it begins every translation with this token, as BART's kin do."""
    vocabulary = [*SPECIALS, *words]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(vocabulary)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 2)])
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=len(vocabulary), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=40, init_std=0.5,
        forced_bos_token_id=forced_bos,
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = forced_bos
    model.save_pretrained(folder)
    return folder
