"""Memory of one pre-training update of the paper's DeBERTa-base: batch 128 x 128 tokens, 15 % masked.

    python benchmarks/memory.py                      # any machine: counted on small batches, scaled to the batch
    python benchmarks/memory.py --device cuda        # the peak that the allocator saw; add --precision bf16

Counted: weights, gradient and AdamW's two moments, plus every tensor that the forward pass keeps for the backward
pass (each storage once), plus the gradient of the logits. What is kept grows linearly with the batch, so two small
batches give it for any. Hugging Face's class is counted the same way, and the last line
is ours / peer.
"""

import argparse
import gc

import torch

from masklab.config.schema import Encoder
from masklab.models.encoder import MaskedLM
from masklab.models.huggingface import export_config

GIB = 2**30


def batch_of(size: int, length: int, vocab: int, device):
    """Token ids [B, T], lengths [B] and the flat positions of 15 % of the tokens of each row."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, vocab, (size, length), generator=generator)
    masked = round(0.15 * length)
    at = torch.cat([row * length + 1 + torch.randperm(length - 2, generator=generator)[:masked] for row in range(size)])
    return ids.to(device), torch.full((size,), length, device=device), at.sort().values.to(device)


def kept_bytes(forward, parameters) -> int:
    """Bytes of the distinct storages that `forward` keeps for the backward pass, parameters left out."""
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    found = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage  # held, so that no later one gets its address
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = forward()
    total = sum(storage.nbytes() for storage in found.values())
    del loss
    return total


def ours(encoder, args, device):
    model = MaskedLM(encoder, args.vocab).to(device).train()

    def loss(size):
        ids, lengths, at = batch_of(size, args.length, args.vocab, device)
        logits = model(ids, lengths, at=at).logits
        return torch.nn.functional.cross_entropy(logits.float(), ids.flatten()[at])

    return model, loss, round(0.15 * args.length) * args.vocab * 4


def peer(encoder, args, device):
    import transformers

    described = export_config(encoder, args.vocab)
    config = transformers.AutoConfig.for_model(described.pop("model_type"), **described)
    model = transformers.AutoModelForMaskedLM.from_config(config).to(device).train()

    def loss(size):
        ids, _, at = batch_of(size, args.length, args.vocab, device)
        labels = torch.full_like(ids, -100)
        labels.view(-1)[at] = ids.view(-1)[at]
        return model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss

    return model, loss, args.length * args.vocab * 4


def counted(make, encoder, args) -> float:
    model, loss, logit_bytes = make(encoder, args, "cpu")
    parameters = list(model.parameters())
    one, two = (kept_bytes(lambda size=size: loss(size), parameters) for size in (1, 2))
    state = 16 * sum(parameter.numel() for parameter in parameters)
    return state + one + (args.batch - 1) * (two - one) + args.batch * logit_bytes


def allocated(make, encoder, args) -> float:
    """The allocator's peak; in fp32 where a class knows no bf16, as transformers' DeBERTa under autocast."""
    try:
        return _allocated(make, encoder, args, args.precision == "bf16")
    except RuntimeError as error:
        if args.precision == "fp32" or "BFloat16" not in str(error):
            raise
    print("without bf16, which this class fails in:", end=" ")
    return _allocated(make, encoder, args, False)


def _allocated(make, encoder, args, low: bool) -> float:
    gc.collect()  # what was measured before goes first: the imports of the first optimiser leave a cycle that holds it
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model, loss, _ = make(encoder, args, "cuda")
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(2):
        with torch.autocast("cuda", torch.bfloat16, enabled=low):
            value = loss(args.batch)
        value.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)
    return torch.cuda.max_memory_allocated()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128, help="sequences (default: %(default)s)")
    parser.add_argument("--length", type=int, default=128, help="tokens of each (default: %(default)s)")
    parser.add_argument("--vocab", type=int, default=25000, help="pieces (default: %(default)s)")
    parser.add_argument("--positions", choices=["disentangled", "absolute"], default="disentangled")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="(default: %(default)s)")
    parser.add_argument(
        "--precision", choices=["fp32", "bf16"], default="fp32", help="with cuda (default: %(default)s)"
    )
    args = parser.parse_args()
    encoder = Encoder(positions=args.positions, layers=12, hidden=768, heads=12)
    how = "allocator's peak" if args.device == "cuda" else "counted on batches of 1 and 2, scaled"
    print(f"{args.positions}, 12 x 768, vocabulary {args.vocab:,}, batch {args.batch} x {args.length}: {how}")
    found = {}
    for name, make in (("MaskLab", ours), ("Hugging Face", peer)):
        found[name] = (allocated if args.device == "cuda" else counted)(make, encoder, args)
        print(f"{name}: {found[name] / GIB:.1f} GiB")
    print(f"ratio: {found['MaskLab'] / found['Hugging Face']:.2f}")


if __name__ == "__main__":
    main()
