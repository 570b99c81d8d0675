"""Whether a GPU waits for the host: the time to hand a compiled update to it over the time that its kernels take.

    python benchmarks/gpu_update.py [--length 128 --batch 256 --positions absolute] [--eager]
    python benchmarks/gpu_update.py --inductor combo_kernels      # tries a switch of torch's compiler
    python benchmarks/gpu_update.py --no-cudnn                    # attention by torch's own kernels

Updates of the training loop of BERT-base in bf16, as `pretraining_throughput.py --gpu` has them. Printed are the first
blocks, in which torch compiles, how many graphs it made, the time of an update, and its costliest kernels and
functions of the host. The last line is host / GPU: below 1, the GPU computes all the time.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
import torch._inductor.config
from pretraining_throughput import Ours, write_corpus
from torch._dynamo.utils import counters

from masklab.config.schema import Encoder

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--length", type=int, default=128, help="longest sequence; above 128 packed (default: %(default)s)")
parser.add_argument("--batch", type=int, default=256, help="sequences per update (default: %(default)s)")
parser.add_argument("--positions", choices=["absolute", "relative", "disentangled"], default="absolute")
parser.add_argument("--updates", type=int, default=50, help="of a block (default: %(default)s)")
parser.add_argument("--blocks", type=int, default=4, help="before anything is timed (default: %(default)s)")
parser.add_argument("--profiled", type=int, default=6, help="updates under torch's profiler (default: %(default)s)")
parser.add_argument("--inductor", nargs="*", default=[], help="switches of torch._inductor.config to turn on")
parser.add_argument("--no-cudnn", action="store_true", help="attention by torch's own kernels")
parser.add_argument("--eager", action="store_true", help="not compiled")


def main():
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this machine has no GPU")
    for name in args.inductor:
        if not isinstance(getattr(torch._inductor.config, name, None), bool):
            parser.error(f"--inductor: torch has no switch {name!r}")
        setattr(torch._inductor.config, name, True)
    torch.backends.cuda.enable_cudnn_sdp(not args.no_cudnn)
    args.gpu, args.precision, args.packed = True, "bf16", args.length > 128
    encoder = Encoder(positions=args.positions, layers=12, hidden=768, heads=12, max_positions=max(128, args.length))
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(encoder, write_corpus(Path(folder), 30522, args.length, args.packed), Path(folder), args)
        print(f"{torch.cuda.get_device_name()}; torch {torch.__version__}; {args.positions} positions, 12 x 768")
        for _ in range(args.blocks):
            tokens, seconds, _ = ours.block()
            print(f"{args.updates} updates: {seconds:.1f} s, {tokens / seconds:,.0f} tokens/s", flush=True)
        print(f"graphs compiled: {counters['stats']['unique_graphs']}")
        learner, first = ours.learner, ours.step
        with learner.ahead(first):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for step in range(first, first + args.updates):
                learner.update(step)
            handed = (time.perf_counter() - start) / args.updates
            torch.cuda.synchronize()
            whole = (time.perf_counter() - start) / args.updates
        first += args.updates
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            for step in range(first, first + args.profiled):
                learner.update(step)
            torch.cuda.synchronize()
    events = profile.key_averages()
    for key in ("self_cuda_time_total", "self_cpu_time_total"):
        print(events.table(sort_by=key, row_limit=16, max_name_column_width=60))
    kernels = [event for event in events if event.device_type.name == "CUDA" and not event.is_user_annotation]
    kernels = sum(event.self_device_time_total for event in kernels) / 1e6 / args.profiled
    print(f"an update: handed over in {1000 * handed:.1f} ms, done in {1000 * whole:.1f} ms", end="; ")
    print(f"its kernels: {1000 * kernels:.1f} ms (of {args.profiled} other updates)")
    print(f"ratio: {handed / kernels:.2f}")


if __name__ == "__main__":
    main()
