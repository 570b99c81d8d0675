"""Initial weights of a model's architecture: of its shapes, none of its numbers, the same whenever they are drawn."""

import pytest
import torch
import transformers

from masklab.config.schema import Encoder
from masklab.files import write_json
from masklab.models.encoder import MaskedLM
from masklab.models.foreign import ForeignMaskedLM
from masklab.models.initial import initial, is_initial


def checked(model):
    state = torch.random.get_rng_state()
    made, again, other = initial(model), initial(model), initial(model, seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert type(made) is type(model) and not made.training
    theirs, ours = dict(model.named_parameters()), dict(made.named_parameters())
    assert {name: each.shape for name, each in theirs.items()} == {name: each.shape for name, each in ours.items()}
    matrices = [name for name, each in ours.items() if each.dim() == 2]
    assert matrices and not any(torch.equal(theirs[name], ours[name]) for name in matrices)
    assert all(torch.equal(each, again.state_dict()[name]) for name, each in made.state_dict().items())
    assert not torch.equal(ours[matrices[0]], other.get_parameter(matrices[0]))
    return made


def roberta():
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    return transformers.RobertaForMaskedLM(transformers.RobertaConfig(vocab_size=50, initializer_range=0.05, **sizes))


def test_ours_and_those_of_transformers(tiny_encoder):
    ours = MaskedLM(tiny_encoder, 50, generator=torch.Generator().manual_seed(3))
    checked(ours)
    with_head = initial(MaskedLM(tiny_encoder, 50, latent=7))
    assert with_head.latent is None
    checked(roberta())


def test_one_adopted():
    config = Encoder(kind="folder", folder="x", layers=2, hidden=16, heads=2, max_positions=64)
    model = ForeignMaskedLM(roberta(), torch.arange(50), 1, config, gelu=True)
    made = checked(model)
    assert made.gelu and torch.equal(made.order, model.order)
    ids, lengths = torch.tensor([[0, 7, 8, 1]]), torch.tensor([4])
    scores = made(ids, lengths).logits
    assert scores.shape == (4, 50) and not torch.allclose(scores, model.eval()(ids, lengths).logits)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ({"step": 0, "config": {"model": {"folder": None, "init": None, "embeddings": None}}}, True),
        ({"step": 5, "config": {"model": {"folder": None, "init": None, "embeddings": None}}}, False),
        ({"step": 0, "config": {"model": {"folder": "bert", "init": None, "embeddings": None}}}, False),
        ({"step": 0, "config": {"model": {"folder": None, "init": "first@5", "embeddings": None}}}, False),
        ({"step": 0, "config": {"model": {"folder": None, "init": None, "embeddings": "cbow"}}}, False),
        ({"adopted": {}}, False),
        (None, False),
    ],
)
def test_a_checkpoint_says_itself_whether_its_weights_are_initial(made, wanted, tmp_path):
    if made is not None:
        write_json(made, tmp_path / "masklab.json")
    assert is_initial(tmp_path) == wanted
