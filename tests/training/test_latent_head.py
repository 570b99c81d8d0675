"""A run takes over the latent head of the checkpoint that it starts from where both are of one dictionary."""

import dataclasses

import pytest
import torch
from runs import make_run

from masklab.config.schema import Dictionary, Objective
from masklab.files import read_json, write_json
from masklab.training.record import Record
from masklab.training.start import HEAD, initial_model

CODED = Dictionary(model="first@7", layer=2, atoms=48)


@pytest.mark.parametrize(
    ("change", "says", "taken"),
    [
        ({}, True, True),
        ({"wordnet": "elsewhere"}, True, True),  # decides nothing of the codes
        ({"atoms": 32}, True, False),
        ({"penalty": 0.1}, True, False),
        ({"penalty": 0.1}, False, True),  # a checkpoint that does not say of which dictionary it is: by shape
        ({"atoms": 32}, False, False),
    ],
)
def test_a_latent_head_is_taken_over_where_it_is_of_the_same_dictionary(
    english, tiny_encoder, tmp_path, change, says, taken
):
    vocab_size = read_json(english / "tokens" / "meta.json")["vocab_size"]
    run = make_run(english, tiny_encoder, tmp_path, objective=Objective(mlsm=1))
    earlier = dataclasses.replace(run, phase=1, teacher=english, dictionary_config=CODED)
    before = initial_model(earlier, vocab_size, CODED.atoms)
    Record(earlier).checkpoint(before, 7)
    folder = earlier.output / "step-7"
    if not says:
        write_json({}, folder / "masklab.json")
    dictionary = CODED.model_copy(update=change)
    anew, later = (
        dataclasses.replace(run, phase=2, dictionary_config=dictionary, **link)
        for link in ({"teacher": folder}, {"init": folder})
    )
    anew, later = (initial_model(each, vocab_size, dictionary.atoms).state_dict() for each in (anew, later))
    before = before.state_dict()
    assert before.keys() == later.keys() and not torch.equal(before["embeddings.word"], anew["embeddings.word"])
    for name, tensor in later.items():
        assert torch.equal(tensor, (anew if name in HEAD and not taken else before)[name]), name
    assert not torch.equal(before["latent.weight"], anew["latent.weight"])
