import numpy as np
import pytest
import torch

from masklab.errors import MaskLabError
from masklab.sparse.codes import CodeStore, write_codes
from masklab.sparse.targets import Codes, kl_to_sparse, targets


def random_dense(n, k, seed=0):
    generator = torch.Generator().manual_seed(seed)
    dense = torch.rand(n, k, generator=generator)
    dense[torch.rand(n, k, generator=generator) < 0.8] = 0
    dense[n // 2] = 0
    return dense


def to_dense(indices, values, k):
    return torch.zeros(len(values), k).scatter_add(1, indices, values)


@pytest.mark.parametrize(("k", "dtype"), [(40, np.uint16), (70000, np.int32)])
def test_round_trip_and_gather(tmp_path, k, dtype):
    dense = random_dense(30, 40)
    if k > 40:
        dense = torch.cat([torch.zeros(30, k - 40), dense], 1)
    blocks = [Codes.of_dense(part) for part in dense.split([7, 1, 0, 22])]
    assert write_codes(tmp_path, "train", iter(blocks), k) == {"rows": 30, "entries": int((dense > 0).sum())}
    store = CodeStore(tmp_path, "train")
    assert len(store) == 30 and store.indices.dtype == dtype and store.indptr.dtype == np.int64
    assert isinstance(store.values, np.memmap)
    positions = np.array([29, 3, 15, 3, 0])  # 15 is an all-zero row
    indices, values = store.gather(positions)
    expected = torch.nn.functional.normalize(dense[positions], p=1, dim=1)
    torch.testing.assert_close(to_dense(indices, values, k), expected, rtol=1e-6, atol=0)
    assert indices.shape[1] == int((dense[positions] > 0).sum(1).max())
    assert not values[2].any()
    for a, b in zip(targets(Codes.of_dense(dense[positions])), (indices, values), strict=True):
        torch.testing.assert_close(a, b)
    assert store.gather(np.array([15]))[1].tolist() == [[0.0]]
    assert store.gather(np.zeros(0, np.int64))[0].shape == (0, 1)


def test_failed_write_leaves_nothing(tmp_path):
    def blocks():
        yield Codes.of_dense(random_dense(5, 8))
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        write_codes(tmp_path, "train", blocks(), 8)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(MaskLabError, match="no such file"):
        CodeStore(tmp_path, "train")


def test_kl_equals_torch_on_dense_targets():
    k = 40
    dense = random_dense(12, k)
    log_probs = torch.randn(12, k, generator=torch.Generator().manual_seed(1)).log_softmax(1).requires_grad_()
    indices, values = targets(Codes.of_dense(dense))
    ours = kl_to_sparse(indices, values, log_probs)
    target = torch.nn.functional.normalize(dense, p=1, dim=1)
    theirs = torch.nn.KLDivLoss(reduction="none")(log_probs, target).sum(1)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert ours[6] == 0  # an all-zero target
    (gradient,) = torch.autograd.grad(ours.sum(), log_probs)
    torch.testing.assert_close(gradient, -target)
