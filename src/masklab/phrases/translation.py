"""Paraphrases by translating there and back, the way back forced to begin with what stands before the phrase.

Any pair of encoder-decoders of transformers will do (the paper: facebook/wmt19-en-de and -de-en), as folders or by
names that Hugging Face's cache has; nothing is downloaded. As in the released code of Chiang and Yogatama (2023), what
is translated ends with the phrase: what stands behind it is left out.
"""

import torch

from masklab.errors import MaskLabError, in_one_line
from masklab.jobs.lacking import lacking

BEAMS = 5
WITHIN = 1.0  # of the best candidate's score
BATCH = 16
MOST = 256  # tokens of a translation


class Forced:
    """A processor of transformers' beam search: row i of a batch begins with `tokens[i]`, after `first` other tokens.

    One number of each row is left as it is, or 0 where the model's own settings rule that token out (a word twice under
    `no_repeat_ngram_size`): all candidates share it, and without it none would be left. transformers' own
    `prefix_allowed_tokens_fn` asks for a list of allowed tokens of every beam at every step, the whole vocabulary where
    nothing is forced.
    """

    def __init__(self, tokens: list[list[int]], first: int):
        self.tokens, self.first = tokens, first

    def __call__(self, input_ids, scores):
        place, beams = input_ids.shape[1] - self.first, len(scores) // len(self.tokens)
        for row, tokens in enumerate(self.tokens):
            if 0 <= place < len(tokens):
                own = scores[row * beams : (row + 1) * beams]
                kept = own[:, tokens[place]].clone()
                own.fill_(-torch.inf)
                own[:, tokens[place]] = kept.masked_fill(kept.isneginf(), 0.0)
        return scores


class Translator:
    """An encoder-decoder with its tokenizer.

    Raises:
        MaskLabError: there is none of that name, it is none, it cannot be read or lacks weights.
    """

    def __init__(self, model, device="cpu"):
        import transformers
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        transformers.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        how = {"local_files_only": True, "trust_remote_code": False}  # None: a person would be asked
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(str(model), **how)
            read, found = AutoModelForSeq2SeqLM.from_pretrained(str(model), output_loading_info=True, **how)
        except Exception as error:  # of any kind: those of the file's own values, of safetensors, of the library
            if lacking(error):  # memory, rights: no fault of the model
                raise
            raise MaskLabError(f"{model}: no translation model ({in_one_line(error, 200)})") from None
        if missing := [name for name in sorted(found["missing_keys"]) if not _is_computed(read, name)]:
            raise MaskLabError(f"{model}: has no weights for {missing[0]} of its {type(read).__name__}")
        self.model, self.device = read.eval().to(device), device
        self.reversed = _reversed(self.tokenizer)

    def ids(self, text: str) -> list[int]:
        """Tokens of a text of the target language, without special ones."""
        if self.reversed is not None:
            return self.reversed(text, add_special_tokens=False)["input_ids"]
        return self.tokenizer(text_target=text, add_special_tokens=False)["input_ids"]

    def translate(self, texts, prefixes=None, returned: int = 1) -> list[list[tuple[float, list[int]]]]:
        """The best `returned` translations of each text, by beam search: (score, tokens without special ones).

        prefixes: tokens that each translation begins with, of each text; special ones among them are kept. A score is
        the mean logarithm of the probability of all tokens, forced ones included, which all candidates of a text share;
        where the model's own settings have a `length_penalty`, the sum over the number of tokens to that power.
        """
        found: list = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            forced = [list(prefixes[i]) if prefixes else [] for i in batch]
            for i, candidates in zip(batch, self._generate([texts[i] for i in batch], forced, returned), strict=True):
                found[i] = candidates
        return found

    @torch.inference_mode()
    def _generate(self, texts, forced, returned):
        from transformers import LogitsProcessorList

        cut = {"truncation": True, "max_length": self._most()}
        given = self.tokenizer(texts, return_tensors="pt", padding=True, **cut).to(self.device)
        settings = self.model.generation_config
        first = 1 + (settings.forced_bos_token_id is not None)  # tokens before those of the translation
        out = self.model.generate(
            input_ids=given["input_ids"], attention_mask=given["attention_mask"], num_beams=max(BEAMS, returned),
            num_return_sequences=returned, max_new_tokens=min(MOST, self._most()), do_sample=False,
            logits_processor=LogitsProcessorList([Forced(forced, first)]), return_dict_in_generate=True,
            output_scores=True, renormalize_logits=False,  # Marian's: forced tokens would count as certain
        )  # fmt: skip
        special = set(self.tokenizer.all_special_ids)
        rows = out.sequences[:, first:].tolist()
        # A forced token may be special: <unk>, for a word that the model does not know.
        begun = [len(prefix) for prefix in forced for _ in range(returned)]
        tokens = [
            row[:most] + [token for token in row[most:] if token not in special]
            for row, most in zip(rows, begun, strict=True)
        ]
        scores = out.sequences_scores.tolist()
        return [
            list(zip(scores[at : at + returned], tokens[at : at + returned], strict=True))
            for at in range(0, len(rows), returned)
        ]

    def _most(self):
        """Tokens that the model has positions for."""
        config = self.model.config
        return getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 1024

    def text(self, tokens) -> str:
        """What tokens of the target language say."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=True).strip()


def _reversed(tokenizer):
    """The tokenizer of the other direction where one reads any text as of its source language, else None.

    transformers' of FSMT (facebook/wmt19-*) does: it knows no target mode, and so cuts `it's` by the rules of the other
    language and looks its pieces up in the other vocabulary, where the two differ.
    """
    if type(tokenizer).__name__ != "FSMTTokenizer":
        return None
    files = {"src_vocab_file": tokenizer.tgt_vocab_file, "tgt_vocab_file": tokenizer.src_vocab_file}
    langs, lower = [tokenizer.tgt_lang, tokenizer.src_lang], tokenizer.do_lower_case
    return type(tokenizer)(langs=langs, merges_file=tokenizer.merges_file, do_lower_case=lower, **files)


def _is_computed(model, name: str) -> bool:
    """Whether a weight that a file lacks is one of sinusoids, as the paper's own models have; others would be drawn."""
    return "Sinusoidal" in type(model.get_submodule(name.rpartition(".")[0])).__name__


def paraphrases(there: Translator, back: Translator, before: list[str], phrases: list[str]) -> list[str | None]:
    """A paraphrase of each phrase that can stand behind the text before it; None where there is no other.

    Of the candidates whose score is within 1 of the best, the one whose tokens are the furthest from the input's.
    """
    whole = [f"{left} {phrase}".strip() for left, phrase in zip(before, phrases, strict=True)]
    foreign = [there.text(candidates[0][1]) for candidates in there.translate(whole)]
    forced = [back.ids(left) if left.strip() else [] for left in before]
    found = back.translate(foreign, forced, BEAMS)
    chosen = []
    for text, phrase, prefix, candidates in zip(whole, phrases, forced, found, strict=True):
        chosen.append(_chosen(back, back.ids(text), phrase, prefix, candidates))
    return chosen


def _chosen(back, source, phrase, prefix, candidates):
    best, options = max(score for score, _ in candidates), []
    for score, tokens in candidates:
        new = tidied(back.text(tokens[len(prefix) :]), phrase)
        if score > best - WITHIN and new and new.lower() != phrase.lower():
            options.append((edit_distance(tokens, source), score, new))
    return max(options)[2] if options else None


def tidied(text: str, phrase: str) -> str:
    """A translation without the full stop that the phrase has not, and with `'t` in one piece."""
    text = text.replace(" 't", "'t").replace(" n't", "n't").strip()
    return text if phrase.rstrip().endswith(".") else text.rstrip(".").rstrip()


def edit_distance(left, right) -> int:
    """Least number of tokens to insert, delete or replace (Levenshtein)."""
    row = list(range(len(right) + 1))
    for i, token in enumerate(left, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (token != other))
    return row[-1]
