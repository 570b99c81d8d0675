import numpy as np
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.models.encoder import MaskedLM
from masklab.phrases.saliency import occluded, probabilities, saliency
from masklab.probes.classifier import Classifier
from masklab.tasks.encoding import joined
from masklab.tokenizers import CLS, MASK, SEP

LONGEST = 24


@pytest.fixture(params=["absolute", "disentangled"])
def classifier(request):
    config = Encoder(positions=request.param, layers=2, hidden=32, heads=2, max_positions=32, init_range=0.3)
    generator = torch.Generator().manual_seed(1)
    model = Classifier(MaskedLM(config, 60, generator=generator), 3)
    model.reset_head(generator)
    return model.eval()


def examples_and_spans(count=25, pair=True, seed=1):
    rng = np.random.default_rng(seed)
    examples, spans = [], []
    for number in range(count):
        texts = [rng.integers(5, 60, rng.integers(4, 16)).tolist() for _ in range(2)]
        examples.append((texts[0], texts[1] if pair else None))
        of = []
        for _ in range(number % 5):  # the first has none
            text = int(rng.integers(2)) if pair else 0
            begin = int(rng.integers(len(texts[text]) - 2))
            of.append((text, begin, int(rng.integers(begin + 1, len(texts[text]) + 1))))
        spans.append(of)
    return examples, spans


@pytest.mark.parametrize("pair", [False, True])
def test_equals_one_forward_pass_for_each_span(classifier, pair):
    examples, spans = examples_and_spans(pair=pair)
    found = saliency(classifier, examples, spans, LONGEST)
    assert [len(scores) for scores in found] == [len(of) for of in spans]
    for example, of, scores in zip(examples, spans, found, strict=True):
        label = None
        for span, score in zip([None, *of], [None, *scores], strict=True):
            texts = [list(text) if text is not None else None for text in example]
            if span is not None:
                text, begin, end = span
                texts[text][begin:end] = [MASK]
            ids = joined(*texts, LONGEST)
            with torch.inference_mode():
                given = classifier(torch.tensor([ids]), torch.tensor([len(ids)])).softmax(-1)[0]
            if span is None:
                label = int(given.argmax())
            else:
                assert score == pytest.approx(float(given[label]), abs=1e-5)


def test_each_score_is_of_its_own_span():
    """A reader of one token alone: hiding it, and nothing else, takes the label away; it stands last here."""

    def has_nine(ids, lengths):
        found = (ids == 9).any(1).double()
        return torch.stack([-4 * found, 4 * found], 1)

    text = [5, 6, 7, 8, 9]
    (scores,) = saliency(has_nine, [(text, None)], [[(0, at, at + 1) for at in range(5)]], LONGEST)
    assert scores.argmin() == 4 and scores[4] < 0.6 < scores[:4].min()


def test_a_span_gives_way_to_one_mask_and_makes_room():
    assert occluded(([5, 6, 7, 8], None), (0, 1, 3)) == ([5, MASK, 8], None)
    assert occluded(([5], [6, 7]), (1, 0, 2)) == ([5], [MASK])
    long = list(range(5, 15))
    assert joined(*occluded((long, None), (0, 0, 6)), 6) == [CLS, MASK, 11, 12, 13, SEP]


def test_probabilities_come_in_the_order_of_the_rows(classifier):
    rows = [[CLS, *range(5, 5 + size), SEP] for size in (3, 9, 1, 9)]
    together = probabilities(classifier, rows)
    assert together.shape == (4, 3) and np.allclose(together.sum(1), 1)
    for row, given in zip(rows, together, strict=True):
        assert np.allclose(probabilities(classifier, [row])[0], given, atol=1e-6)


def test_logits_that_are_no_numbers_count_as_equal_ones(caplog):
    def predict(ids, lengths):
        logits = torch.stack([ids[:, 1].float(), -ids[:, 1].float(), torch.zeros(len(ids))], 1)
        logits[ids[:, 1] == 7, 1] = torch.nan
        logits[ids[:, 1] == 8] = torch.inf
        return logits

    rows = [[CLS, word, SEP] for word in (1, 7, 2, 8, 3)]
    given = probabilities(predict, rows)
    assert np.allclose(given[[1, 3]], 1 / 3)
    known = np.array([[word, -word, 0.0] for word in (1, 2, 3)])
    assert np.allclose(given[[0, 2, 4]], np.exp(known) / np.exp(known).sum(1, keepdims=True))
    assert caplog.messages == ["2 of 5 rows get logits that are no numbers: training has diverged"]
    caplog.clear()
    probabilities(predict, rows[::2])
    assert not caplog.messages
