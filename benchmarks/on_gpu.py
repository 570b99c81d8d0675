"""What there is to measure and to check on a GPU, one thing after the other, in as much time as there is.

    python benchmarks/on_gpu.py --seconds 480 --to gpu-measurements

The most wanted comes first. Each command has a limit and writes to a file of its own as it goes; one that reaches its
limit is ended with all that it has started, and those for which too little time is left are named. The end of each
output is printed as soon as the command ends. What waits for compilers is told how long its limit lets it wait.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

THROUGHPUT = "benchmarks/pretraining_throughput.py --gpu --patience {patience}"
ROUNDS = 70  # seconds of a measurement of throughput for its start and for its rounds, once all sides are ready
TESTS = "tests/training/test_on_gpu.py tests/training/test_gpu_updates.py tests/probes/test_gpu_probes.py"
# file: seconds at most, seconds below which it is not begun, arguments of Python
COMMANDS = {
    "throughput-128": (190, 150, f"{THROUGHPUT} --rounds 4"),
    "throughput-512": (180, 140, f"{THROUGHPUT} --length 512 --packed --updates 12 --rounds 4"),
    "tests": (120, 60, f"-m pytest -q -n 4 {TESTS}"),
    "update-128": (90, 70, "benchmarks/gpu_update.py"),
    "update-128-combined": (100, 80, "benchmarks/gpu_update.py --inductor combo_kernels"),
    "update-128-no-cudnn": (75, 60, "benchmarks/gpu_update.py --no-cudnn"),
    "memory": (45, 30, "benchmarks/memory.py --device cuda --precision bf16"),
    "phase-2": (
        60, 35, "benchmarks/phase2_overhead.py --device cuda --layers 12 --hidden 768 --vocab 25000 --batch-size 128"
                " --steps 12",
    ),
    "throughput-disentangled": (180, 140, f"{THROUGHPUT} --positions disentangled --rounds 2"),
}  # fmt: skip


def within(arguments: str, seconds: float) -> str:
    """Arguments of a command of `COMMANDS` that is ended after `seconds`."""
    return arguments.format(patience=int(seconds) - ROUNDS)


def run(arguments: str, file: Path, seconds: float) -> str:
    """How a command ended; what it said is in `file`, and nothing that it has started goes on."""
    with file.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-u", *arguments.split()], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            ended = f"status {process.wait(seconds)}"
        except subprocess.TimeoutExpired:
            ended = f"ended after {seconds:.0f} s, before it was done"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=480, help="for all of it (default: %(default)s)")
    parser.add_argument("--to", type=Path, default=Path("gpu-measurements"), help="folder (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=COMMANDS, default=list(COMMANDS), help="these, in this order")
    args = parser.parse_args()
    args.to.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + args.seconds
    for name in args.only:
        most, least, arguments = COMMANDS[name]
        left = until - time.monotonic()
        if left < least:
            print(f"== {name}: not begun, {left:.0f} s are left", flush=True)
            continue
        began, file, limit = time.monotonic(), args.to / f"{name}.txt", min(most, left)
        arguments = within(arguments, limit)
        ended = run(arguments, file, limit)
        print(f"== {name}: {ended}, {time.monotonic() - began:.0f} s: python {arguments}", flush=True)
        print(file.read_text(errors="replace")[-1200:], flush=True)


if __name__ == "__main__":
    main()
