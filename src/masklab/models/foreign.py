"""Any masked language model of the transformers library behind the interface of our own encoder.

Probes ask a model for scores at some positions (`forward`), for hidden states (`encode`, `states`) and for its
`config`; this gives them all three from `AutoModelForMaskedLM`, whatever the architecture: RoBERTa, DeBERTa-v2,
ModernBERT, ELECTRA's generator. Ids are ours ([CLS], [SEP], <unk>, <pad>, [MASK] are 0 to 4) and are looked up in the
model's own numbering as they come in, as are its scores as they go out. The head runs at the positions asked for alone.
No code of a folder is run, and only safetensors files are read.
"""

import functools
from pathlib import Path

import torch
from torch import nn

from masklab.config.adopted import GELU, shape
from masklab.config.schema import Encoder
from masklab.errors import MaskLabError, in_one_line
from masklab.files import read_json, write_json
from masklab.inside_torch import shallow_copy
from masklab.models.checkpoint import FOREIGN
from masklab.models.encoder import Output


class _Given(nn.Module):
    """Stands in the place of the base model while the head runs: returns states that are already there."""

    def __init__(self, base):
        super().__init__()
        self.__dict__["base"], self.__dict__["states"] = base, None

    def __getattr__(self, name):  # some heads read the embeddings of the base model
        return getattr(self.__dict__["base"], name)

    def forward(self, *_, **__):
        return _only()(last_hidden_state=self.states)


@functools.cache  # torch keeps a record of every such class
def _only():
    """The class of an output of states alone."""
    from transformers.modeling_outputs import BaseModelOutput

    class Only(BaseModelOutput):
        def __getattr__(self, name):  # what some base models return besides, and their heads hand on
            if name.startswith("_"):
                raise AttributeError(name)
            return None

    return Only


class ForeignMaskedLM(nn.Module):
    """A model of transformers as probes read it; see `masklab.models.encoder.MaskedLM` for the methods.

    model: a `...ForMaskedLM`; order [V]: the model's own number of each of our ids; pad: its padding's; gelu: whether
    its architecture's classifiers have a gelu, else a tanh.
    """

    latent_size, latent, decoder = 0, None, None
    relative = "its own"  # whatever it has of distances

    def __init__(self, model, order, pad: int, config: Encoder, gelu: bool = False):
        super().__init__()
        self.config, self.vocab_size, self.pad, self.gelu = config, len(order), pad, gelu
        name = model.base_model_prefix
        self.base = getattr(model, name)
        # named as our own head, which classifiers leave out
        self.head = nn.ModuleDict({key: part for key, part in model.named_children() if key != name})
        self.__dict__["given"] = _Given(self.base)
        view = shallow_copy(model)
        setattr(view, name, self.given)
        self.__dict__["view"] = view  # no module of this one: its parameters are those of base and head
        self.register_buffer("order", torch.as_tensor(order, dtype=torch.long), persistent=False)

    def _read(self, ids, lengths, every: bool = False):
        """What the base model returns of our ids; every: with the hidden states of all layers."""
        if ids.shape[1] > self.config.max_positions:
            raise MaskLabError(f"sequence of {ids.shape[1]} tokens: max_positions is {self.config.max_positions}")
        seen = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        own = self.order[ids].masked_fill(~seen, self.pad)
        return self.base(input_ids=own, attention_mask=seen.long(), output_hidden_states=every)

    def forward(self, ids, lengths, at=None, hidden: int | None = None, positions=None) -> Output:
        """Scores [N, V] at the flat positions `at` (None: all), and the states of layer `hidden` there."""
        if positions is not None:
            raise MaskLabError("a model made elsewhere takes no `positions`")
        read = self._read(ids, lengths, every=hidden is not None)
        last = _at(read.last_hidden_state, at)
        self.given.__dict__["states"] = last[:, None]
        logits = self.view(input_ids=ids[:1, :1]).logits[:, 0]
        self.given.__dict__["states"] = None
        state = None if hidden is None else _at(self._layers(read)[hidden], at)
        return Output(logits[:, self.order], None, state)

    def encode(self, ids, lengths, layer: int | None = None, at=None, positions=None):
        """Hidden states of `layer` (None: the last) [B, T, H], or [N, H] at `at`."""
        if positions is not None:
            raise MaskLabError("a model made elsewhere takes no `positions`")
        count = self.config.layers
        if layer is not None and not 0 <= layer <= count:
            raise MaskLabError(f"layer {layer}: the encoder has layers 0 to {count}")
        last = layer is None or layer == count
        read = self._read(ids, lengths, every=not last)
        states = read.last_hidden_state if last else self._layers(read)[layer]
        return states if at is None else _at(states, at)

    def states(self, ids, lengths):
        """Hidden states of layers 0 .. L in turn, [B T, H] each."""
        for layer in self._layers(self._read(ids, lengths, every=True)):
            yield layer.flatten(0, 1)

    @staticmethod
    def _layers(read):
        # the last entry of hidden_states comes before a final layer norm
        return (*read.hidden_states[:-1], read.last_hidden_state)


def _at(states, at):
    flat = states.flatten(0, 1)
    return flat if at is None else flat.index_select(0, at)


# --- folders ------------------------------------------------------------------


def adopt_whole(folder, output) -> int:
    """Write the folder of a model of transformers to `output`: as it is, with the order of our ids beside it.

    Returns the number of its parameters.

    Raises:
        MaskLabError: no masked language model, or a tokenizer that is not fast or lacks one of the five tokens.
    """
    from masklab.files import atomic_folder
    from masklab.foreign_tokenizers import renumbered

    model = _model(folder)
    rows = model.get_input_embeddings().weight.shape[0]
    tokenizer, order = renumbered(folder, rows)
    with atomic_folder(output) as temporary:
        model.save_pretrained(temporary, max_shard_size="1000GB")
        tokenizer.save(str(temporary / "tokenizer.json"))
        write_json({"adopted": str(folder), "config": {"model": {"masking": {}}}}, temporary / "masklab.json")
        write_json({"order": order}, temporary / FOREIGN)
    return sum(parameter.numel() for parameter in model.parameters())


def load_foreign(folder, device="cpu") -> ForeignMaskedLM:
    """Read a folder written by `adopt_whole`; in training mode, as any new module."""
    order = read_json(Path(folder) / FOREIGN)["order"]
    config = Encoder(kind="folder", folder=str(folder), **shape(folder))
    gelu = read_json(Path(folder) / "config.json").get("model_type") in GELU
    return ForeignMaskedLM(_model(folder), order, order[3], config, gelu).to(device).train()


def _model(folder):
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if not any(Path(folder).glob("*.safetensors")):
        raise MaskLabError(f"{folder}: holds no safetensors file (weights are read from safetensors files only)")
    try:
        model, found = transformers.AutoModelForMaskedLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,  # None: whoever sits at the terminal is asked whether code of the folder may run
            use_safetensors=True,
            output_loading_info=True,
            dtype=torch.float32,
        )
    except Exception as error:  # of any kind: those of the file's own values, of safetensors, of the library
        raise MaskLabError(
            f"{folder}: transformers cannot read a masked language model from it ({in_one_line(error)})"
        ) from None
    if missing := sorted(found["missing_keys"]):
        raise MaskLabError(f"{folder}: is no masked language model: it has no weights for {missing[0]}")
    return model
