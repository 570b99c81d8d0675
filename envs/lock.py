"""Write the lock anew: `python envs/lock.py`, with `--upgrade` for the newest versions that pyproject.toml allows.

`lock.txt` holds every package of the environment with the hashes of all its files on PyPI, for every platform and
Python; `lock-cuda.txt` the libraries that a build of torch for CUDA loads, which a build for CPUs does without;
`lock-torch.txt` torch, of which a machine may offer a build of its own; `lock-spams.txt` SPAMS, which has no build for
some machines; `lock-build.txt` what builds the packages that come as source alone, so that nothing unpinned is fetched
for it.
Versions stay as they are unless `--upgrade` or pyproject.toml says otherwise. Needs uv (`pip install uv`).
"""

import argparse
import hashlib
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = {  # name -> what it holds, first letters of its packages; the first holds all others
    "lock.txt": ("The environment", ()),
    "lock-cuda.txt": ("What torch's build for CUDA loads", ("cuda-", "nvidia-", "triton=")),
    "lock-torch.txt": ("torch", ("torch=",)),
    "lock-spams.txt": ("SPAMS", ("spams-bin=",)),
    "lock-build.txt": ("What builds packages that come without a wheel", ("setuptools=",)),
}
UNUSED = ("torchvision",)  # backpack asks for it and nothing here imports it
HEAD = "# {what}. Written by `python envs/lock.py`: all files of each version, by their hashes.\n"


def entries(text: str) -> list[str]:
    """The packages of a lock, each with its hashes, as it stands there."""
    return re.findall(r"^[\w.-]+==.*(?:\n    --hash=.*)*", text, re.MULTILINE)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="the newest versions that are allowed")
    parser.add_argument("--wheel", type=Path, nargs="*", default=[], help="builds beside PyPI's whose hashes count too")
    options = parser.parse_args(arguments)
    kept = [] if options.upgrade else ["--constraints", "-"]
    known = [entry for name in FILES if (HERE / name).exists() for entry in entries((HERE / name).read_text())]
    command = [
        "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-annotate", "--no-header",
        "--all-extras", "--python-version", "3.11", *kept, *(f"--no-emit-package={name}" for name in UNUSED),
        str(HERE.parent / "pyproject.toml"),
    ]  # fmt: skip
    constraints = "\n".join(entry.split()[0] for entry in known)
    made = subprocess.run(command, input=constraints, capture_output=True, text=True)
    if made.returncode:
        sys.stderr.write(made.stderr)
        return 1
    before = {} if options.upgrade else {entry.split()[0]: entry for entry in known}
    found = [with_hashes(entry, options.wheel, before) for entry in entries(made.stdout)]
    for name, (what, first) in reversed(FILES.items()):
        here = [entry for entry in found if entry.startswith(first)] if first else found
        found = [entry for entry in found if entry not in here]
        (HERE / name).write_text(HEAD.format(what=what) + "\n".join(here) + "\n")
    return 0


def with_hashes(entry: str, wheels: list[Path], before: dict[str, str]) -> str:
    """An entry with the hashes of those of `wheels` that are builds of its version, and those that it had before."""
    name, version = re.match(r"([\w.-]+)==(\S+)", entry).groups()
    builds = [wheel for wheel in wheels if wheel.name.startswith((f"{name}-{version}-", f"{name}-{version}+"))]
    hashes = re.findall("sha256:[0-9a-f]+", before.get(f"{name}=={version}", ""))
    hashes += [f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" for wheel in builds]
    return entry + "".join(f" \\\n    --hash={each}" for each in dict.fromkeys(hashes) if each not in entry)


if __name__ == "__main__":
    sys.exit(main())
