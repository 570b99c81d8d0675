"""Starting points keep what they promise and nothing else."""

import numpy as np
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.checkpoint import export_weights
from masklab.models.encoder import MaskedLM
from masklab.models.starting import place_embeddings, shuffle_weights


@pytest.mark.parametrize("positions", ["absolute", "disentangled"])
def test_shuffling_permutes_each_tensor_of_the_hugging_face_class(positions):
    config = Encoder(positions=positions, layers=2, hidden=32, heads=2, max_positions=16)
    model = MaskedLM(config, 50, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():  # a trained model's numbers all differ
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    before = {name: tensor.clone() for name, tensor in export_weights(model).items()}
    shuffle_weights(model, 1, "m", 1)
    after = export_weights(model)
    for name, tensor in before.items():
        if "token_type" in name:  # one row written twice
            continue
        assert torch.equal(tensor.flatten().sort().values, after[name].flatten().sort().values), name
        assert (tensor == after[name]).float().mean() < 0.3, name
    again = MaskedLM(config, 50, generator=torch.Generator().manual_seed(1))
    shuffle_weights(again, 1, "m", 1)
    other = MaskedLM(config, 50, generator=torch.Generator().manual_seed(1))
    shuffle_weights(other, 1, "m", 2)
    assert not torch.equal(again.embeddings.word, other.embeddings.word)
    shuffle_weights(third := MaskedLM(config, 50, generator=torch.Generator().manual_seed(1)), 1, "m", 1)
    assert torch.equal(again.embeddings.word, third.embeddings.word)


@torch.no_grad()
def test_a_decoder_is_shuffled_by_its_own_heads():
    """Its query, key and value are a tensor each, as the encoder's are."""
    decoder = {"layers": 1, "hidden": 6, "heads": 1}
    model = MaskedLM(Encoder(positions="absolute", layers=1, hidden=32, heads=4, decoder=decoder), 50)
    bias = model.decoder.blocks[0].attention.in_proj.bias
    bias.copy_(torch.tensor([1.0, 2.0, 3.0]).repeat_interleave(6))
    shuffle_weights(model, 1, "m", 1)
    assert bias.tolist() == [1.0] * 6 + [2.0] * 6 + [3.0] * 6


def test_embeddings_are_placed_row_by_row():
    model = MaskedLM(Encoder(layers=1, hidden=8, heads=2), 20, generator=torch.Generator().manual_seed(1))
    before = model.embeddings.word.detach().clone()
    vectors = np.zeros((20, 8), np.float32)
    vectors[5:18] = np.random.default_rng(1).normal(size=(13, 8))
    place_embeddings(model, vectors)
    word = model.embeddings.word.detach()
    assert torch.equal(word[5:18], torch.from_numpy(vectors[5:18]))
    assert torch.equal(word[:5], before[:5]) and torch.equal(word[18:], before[18:])
    with pytest.raises(MaskLabError, match=r"embeddings: \(20, 9\)"):
        place_embeddings(model, np.zeros((20, 9), np.float32))
