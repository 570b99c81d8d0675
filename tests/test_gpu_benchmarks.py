"""What benchmarks do on a GPU alone, as far as it can be tried without one."""

import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import memory
import on_gpu
import pretraining_throughput as throughput

from masklab.config.schema import Encoder


def test_what_waits_for_compilers_leaves_time_for_its_rounds():
    waiting = [name for name, (*_, arguments) in on_gpu.COMMANDS.items() if "pretraining_throughput" in arguments]
    assert len(waiting) == 3
    for name, (most, least, arguments) in on_gpu.COMMANDS.items():
        for limit in (most, least):
            words = on_gpu.within(arguments, limit).split()
            assert not any("{" in word for word in words)
            assert ("--patience" in words) == (name in waiting)
            if name in waiting:
                assert 60 <= int(words[words.index("--patience") + 1]) <= limit - on_gpu.ROUNDS


@pytest.fixture
def tf32():
    """Whether products may be rounded is a setting of the process, by two interfaces."""
    yield
    torch.backends.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")


def args(**more):
    options = {"gpu": True, "positions": "absolute", "vocab": 50, "batch": 2, "updates": 2}
    return SimpleNamespace(**options | more)


def test_no_peer_of_deberta_is_in_bf16():
    """transformers' class fails under bf16 autocast, as `memory.py` finds too."""
    for positions in ("absolute", "disentangled"):
        made = throughput.peers(args(positions=positions)).values()
        assert len({peer.compiled for peer in made}) == 2
        assert {(peer.bf16, peer.tf32) for peer in made} == {
            (False, True) if positions == "disentangled" else (True, None)
        }
    assert {peer.bf16 for peer in throughput.peers(args(gpu=False, positions="disentangled")).values()} == {True, False}


def test_a_compiled_peer_may_ask_for_tf32_by_both_interfaces(tmp_path, monkeypatch, tf32):
    """transformers sets the new one alone, and torch refuses to read the old one, as its compiler does."""
    monkeypatch.setattr(transformers.training_args, "is_torch_tf32_available", lambda: True)
    monkeypatch.setattr(transformers.TrainingArguments, "_validate_args", lambda self: None)
    monkeypatch.setattr(transformers.TrainingArguments, "device", torch.device("cpu"))
    transformers.training_args.enable_tf32.cache_clear()
    encoder = Encoder(layers=1, hidden=32, heads=2, positions="absolute")
    throughput.CompiledPeer(encoder, [], tmp_path, args())
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert torch.backends.cuda.matmul.allow_tf32 and torch.get_float32_matmul_precision() == "high"


def test_one_gpu_of_several_is_used(monkeypatch):
    class Begun(Exception):
        pass

    def measure(*_):
        raise Begun

    monkeypatch.setattr(throughput, "measure", measure)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(sys, "argv", ["pretraining_throughput.py", "--gpu"])
    for given, used in (("2,3", "2"), (None, "0")):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if given:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        with pytest.raises(Begun):
            throughput.main()
        assert throughput.os.environ["CUDA_VISIBLE_DEVICES"] == used


def test_memory_is_counted_without_what_was_measured_before(monkeypatch):
    class Model:
        def __init__(self):
            self.cycle = self

    left = weakref.ref(Model())
    found = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: found.append(left()))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 7)
    layer = torch.nn.Linear(2, 2)
    made = layer, lambda size: layer(torch.ones(size, 2)).sum(), 0
    assert memory._allocated(lambda *_: made, None, args(), False) == 7
    assert found == [None]
