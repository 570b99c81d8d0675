"""What a large study costs before it computes anything: 100 models x 50 tasks x 5 seeds, one job per task or packed.

    python benchmarks/scale.py [--models 100] [--tasks 50] [--seeds 5] [--pack 10]

Snakemake dry-runs a synthetic config (small symbolic models, pattern tasks) three times: one job per (model, task) as
plain Snakemake would have it, `pack` tasks to a job, and one job per model. For each: jobs submitted, seconds until the
graph is ready (CPU and clock), memory of the Snakemake process. The last line is packed / one by one, in submissions;
a job costs some 5 s of CPU to start (Snakemake twice, srun, Python, torch) before it does anything.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
START = 5  # seconds of CPU that a Slurm job takes to start and to end: measured, one-node Slurm, 40 empty jobs


def synthetic(models: int, tasks: int, seeds: int, split: list[str], pack: int) -> dict:
    """A study of so many small models, each fine-tuned on so many tasks."""
    names = [f"t{number}" for number in range(tasks)]
    model = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 100, "batch_size": 8}
    return {
        "chains": {"words": {"synsets": 50}},
        "corpora": {"c": {"kind": "markov", "chains": "words", "distributional": True, "sequences": 100, "length": 20}},
        "tokenizers": {"t": {"kind": "symbols", "corpus": "c", "max_length": 22}},
        "encoders": {"e": {"positions": "absolute", "layers": 2, "hidden": 32, "heads": 2, "max_positions": 32}},
        "objectives": {"mlm": {"mlm": 1}},
        "models": {f"m{number}": model for number in range(models)},
        "tasks": {name: {"kind": "patterns", "chains": "words", "length": 20, "set_size": 3, "seed": number}
                  for number, name in enumerate(names)},
        "probes": {"tune": {"kind": "finetune", "tasks": names, "seeds": list(range(seeds)), "split": split,
                            "pack": pack}},
        "studies": {"scale": {"panels": {"all": [f"m{number}" for number in range(models)]},
                              "probes": {"tune": "all"}}},
    }  # fmt: skip


def dry_run(config: dict, folder: Path) -> dict:
    """Jobs, seconds and bytes of one dry run."""
    path = folder / "scale.yaml"
    path.write_text(yaml.safe_dump({"extends": []} | config))  # alone, not over the default run
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", "--cores", "2", "--snakefile",
               str(ROOT / "Snakefile"), "--directory", str(folder), "--configfile", str(path)]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    began, output = time.monotonic(), folder / "output"
    with open(output, "w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(output.read_text())
    counts = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output.read_text(), re.M)}
    submitted = counts["total"] - sum(counts.get(rule, 0) for rule in ("all", "scores"))
    cpu, clock = used.ru_utime + used.ru_stime, time.monotonic() - began
    return {
        "submitted": submitted,
        "probes": counts["probe"],
        "cpu": cpu,
        "clock": clock,
        "memory": used.ru_maxrss / 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("models", 100), ("tasks", 50), ("seeds", 5), ("pack", 10)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    size = args.models, args.tasks, args.seeds
    found = {}
    cuts = {"one job per task": (["task"], 1), f"{args.pack} tasks to a job": (["task"], args.pack),
            "one job per model": ([], 1)}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, (split, pack) in cuts.items():
            found[name] = row = dry_run(synthetic(*size, split, pack), Path(folder))
            tunings = args.models * args.tasks * args.seeds
            print(f"{name:20} {row['submitted']:6,} submitted  {tunings / row['probes']:7.1f} fine-tunings a job"
                  f"  {START * row['submitted'] / 3600:5.2f} h to start them  graph: {row['cpu']:5.1f} s CPU,"
                  f" {row['clock']:5.1f} s clock, {row['memory']:,.0f} MiB", flush=True)  # fmt: skip
    single, packed, _ = found.values()
    print(f"ratio: {packed['submitted'] / single['submitted']:.3f}")


if __name__ == "__main__":
    main()
