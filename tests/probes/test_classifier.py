import pytest
import torch
from torch.nn import functional as F
from transformers import BertForSequenceClassification, DebertaForSequenceClassification

from masklab.models.checkpoint import load_checkpoint
from masklab.optim.flat import FlatParameters
from masklab.probes.classifier import Classifier
from masklab.tokenizers import PAD, load_tokenizer


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
def test_equals_the_transformers_classifier(make_checkpoint, positions):
    folder = make_checkpoint(positions)
    theirs_class = DebertaForSequenceClassification if positions == "disentangled" else BertForSequenceClassification
    theirs = theirs_class.from_pretrained(folder, num_labels=3).eval()
    ours = Classifier(load_checkpoint(folder), 3).eval()
    dense = theirs.pooler.dense if positions == "disentangled" else theirs.bert.pooler.dense
    with torch.no_grad():
        for layer in (dense, theirs.classifier):
            layer.weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(1))
            layer.bias.normal_(0, 0.3, generator=torch.Generator().manual_seed(2))
    ours.dense.load_state_dict(dense.state_dict())
    ours.classifier.load_state_dict(theirs.classifier.state_dict())
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, load_tokenizer(folder).get_vocab_size(), (6, 11), generator=generator)
    lengths = torch.tensor([11, 4, 7, 3, 11, 9])
    mask = torch.arange(11) < lengths[:, None]
    ids = ids.where(mask, PAD)
    with torch.no_grad():
        wanted = theirs(input_ids=ids, attention_mask=mask.long()).logits
        assert wanted.std() > 0.05
        torch.testing.assert_close(ours(ids, lengths), wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("positions", ["absolute", "relative", "disentangled"])
def test_the_activation_that_is_asked_for_else_that_of_the_architecture(make_checkpoint, positions):
    encoder, own = load_checkpoint(make_checkpoint(positions)), F.gelu if positions != "absolute" else torch.tanh
    heads = [Classifier(encoder, 2, "cls", activation).activation for activation in (None, "tanh", "gelu")]
    assert heads == [own, torch.tanh, F.gelu]


def test_fresh_head_has_the_encoders_initialisation(make_checkpoint):
    model = Classifier(load_checkpoint(make_checkpoint()), 2)
    model.reset_head(torch.Generator().manual_seed(0))
    assert model.dense.weight.std().item() == pytest.approx(0.15, rel=0.1)
    assert not model.dense.bias.any()
    assert not model.classifier.bias.any()


def test_flat_steps_equal_torchs_adamw_on_separate_parameters(make_checkpoint):
    folder = make_checkpoint()
    ids, lengths = torch.randint(5, 50, (4, 8), generator=torch.Generator().manual_seed(0)), torch.tensor([8, 8, 5, 6])
    models = []
    for kind in ("flat", "torch"):
        model = Classifier(load_checkpoint(folder), 2).eval()
        model.reset_head(torch.Generator().manual_seed(0))
        models.append(model)
        parameters = list(model.used_parameters().values())
        flat = FlatParameters(parameters) if kind == "flat" else None
        optimiser = torch.optim.AdamW(parameters, weight_decay=0.1)
        for lr in (1e-2, 5e-3, 1e-3):
            torch.nn.functional.cross_entropy(model(ids, lengths), torch.tensor([0, 1, 1, 0])).backward()
            if flat:
                flat.step(lr, weight_decay=0.1, clip=0.5)
            else:
                torch.nn.utils.clip_grad_norm_(parameters, 0.5)
                optimiser.param_groups[0]["lr"] = lr
                optimiser.step()
                optimiser.zero_grad()
    start = Classifier(load_checkpoint(folder), 2).get_parameter("encoder.embeddings.word")
    assert (models[0].get_parameter("encoder.embeddings.word") - start).abs().max() > 1e-3
    for name, parameter in models[0].named_parameters():
        torch.testing.assert_close(parameter, models[1].get_parameter(name), atol=1e-5, rtol=0, msg=name)


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
def test_mean_pooling_averages_the_tokens_of_each_sequence(make_checkpoint, positions):
    model = Classifier(load_checkpoint(make_checkpoint(positions)), 3, pooling="mean").eval()
    model.reset_head(torch.Generator().manual_seed(0))
    ids = torch.randint(5, 50, (3, 9), generator=torch.Generator().manual_seed(3))
    lengths = torch.tensor([4, 9, 2])
    with torch.no_grad():
        found = model(ids.where(torch.arange(9) < lengths[:, None], PAD), lengths)
        for row, length in enumerate(lengths.tolist()):  # each alone, without padding
            states = model.encoder.encode(ids[row : row + 1, :length], lengths[row : row + 1])[0]
            wanted = model.classifier(model.activation(model.dense(states.mean(0))))
            torch.testing.assert_close(found[row], wanted, atol=1e-5, rtol=0)
