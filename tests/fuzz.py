"""Broken files for everything that reads files of a user's: `python tests/fuzz.py --inputs 10000`.

Hypothesis damages sound files: it cuts them, flips bits, removes, repeats and inserts bytes, before or after they are
compressed. A reader must refuse a file in one line (`MaskLabError`) or read it, and what it reads must hold together
(`fuzz_readers` says what that means for each); a traceback, a hang, more memory than `MEMORY` or a crash of the process
is a failure, which is shown with the smallest input that makes it. Ends with status 1 if there is any.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from fuzz_readers import COMPRESS, config, prepare, readers
from masklab.errors import MaskLabError

SECONDS = 20  # that one input may take
MEMORY = 6 << 30  # bytes of address space on top of what the imports take
TOKENS = [b"\0", b"\xff", b"\n", b"\r", b'"', b"\t", b",", b"{", b"}", b"[", b"null", b"-1", b"1e999", b"NaN", b'":',
          b"\xed\xa0\x80", b"\xef\xbb\xbf", b"99999999999999999999", b"\\u0000", b"\\ud800", b"\x00\x00\x00\x7f",
          b"\xff\xff\xff\xff"]  # fmt: skip


PLACE = st.floats(0, 1, exclude_max=True)
STEP = st.one_of(
    st.tuples(st.just("cut"), PLACE),
    st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
    st.tuples(st.just("remove"), PLACE, st.integers(1, 40)),
    st.tuples(st.just("repeat"), PLACE, st.integers(1, 40)),
    st.tuples(st.just("insert"), PLACE, st.one_of(st.sampled_from(TOKENS), st.binary(min_size=1, max_size=8))),
    st.tuples(st.just("put"), PLACE, st.one_of(st.sampled_from(TOKENS), st.binary(min_size=1, max_size=8))),
)
DAMAGE = st.tuples(st.booleans(), st.lists(STEP, min_size=1, max_size=6))


def damaged(data: bytes, steps) -> bytes:
    """`data` after the steps of damage."""
    for kind, place, *how in steps:
        at = int(place * len(data))
        if kind == "cut":
            data = data[:at]
        elif kind == "flip" and data:
            data = data[:at] + bytes([data[at] ^ 1 << how[0]]) + data[at + 1 :]
        elif kind == "remove":
            data = data[:at] + data[at + how[0] :]
        elif kind == "repeat":
            data = data[:at] + data[at : at + how[0]] * 2 + data[at + how[0] :]
        elif kind == "insert":
            data = data[:at] + how[0] + data[at:]
        elif kind == "put":
            data = data[:at] + how[0] + data[at + len(how[0]) :]
    return data


class Hang(BaseException):
    """An input took longer than `SECONDS`."""


def attempt(read, path: Path) -> str:
    """Read a file: "read" or "refused". Anything else raises."""

    def late(*_):
        raise Hang(f"longer than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        read(path)
        return "read"
    except MaskLabError as error:
        lines = str(error).splitlines()
        assert str(error).strip() and (len(lines) == 1 or read is config), f"not one line: {error!s}"
        return "refused"
    finally:
        signal.alarm(0)


def fuzz(name: str, inputs: int, number: int, out) -> None:
    """Try `inputs` damaged files on the reader `name`; send its counts and what failed."""
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        prepare(place / "sound")
        read, file, sound, end = readers(place / "sound")[name]
        counts, last = {"read": 0, "refused": 0}, place / "last"
        log = open(os.devnull, "w")  # noqa: SIM115 - what readers warn of
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        tried = 0

        @seed(number)
        @settings(max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(DAMAGE)
        def case(damage):
            nonlocal tried
            tried += 1
            before, steps = damage
            data = COMPRESS[end](damaged(sound, steps)) if before else damaged(COMPRESS[end](sound), steps)
            shutil.rmtree(last, ignore_errors=True)
            last.mkdir()
            (last / f"{file}{end}").write_bytes(data)
            counts[attempt(read, last / f"{file}{end}")] += 1

        shutil.rmtree(last, ignore_errors=True)
        last.mkdir()
        (last / f"{file}{end}").write_bytes(COMPRESS[end](sound))
        try:
            assert attempt(read, last / f"{file}{end}") == "read", "the sound file is refused"
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
            case()
            fault = None
        except BaseException:
            fault = "\n".join(traceback.format_exc(limit=-4).splitlines()[-28:])
        out.put((name, tried, counts, fault))


def one(name: str, inputs: int, number: int) -> tuple:
    """`fuzz` in a process of its own, which may crash."""
    queue = multiprocessing.get_context("fork").Queue()
    process = multiprocessing.get_context("fork").Process(target=fuzz, args=(name, inputs, number, queue))
    process.start()
    while process.is_alive() and queue.empty():
        time.sleep(0.02)
    found = queue.get() if not queue.empty() else None
    process.join()
    return found or (name, inputs, {"read": 0, "refused": 0}, f"the process ended with {process.exitcode}")


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="broken files in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="readers whose name holds this")
    options = parser.parse_args(arguments)
    import torch  # noqa: F401 - imported once, before the forks

    import masklab.config.schema
    import masklab.corpora
    import masklab.foreign_tokenizers
    import masklab.models.checkpoint
    import masklab.tasks
    import masklab.training.run  # noqa: F401

    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        names = [name for name in readers(Path(place)) if not options.only or options.only in name]
    each, failed, total = -(-options.inputs // len(names)), 0, 0
    print(f"{'reader':32}{'inputs':>8}{'refused':>9}{'read':>7}  failures")
    for name in names:
        name, tried, counts, fault = one(name, each, options.seed)
        total += tried
        failed += bool(fault)
        print(f"{name:32}{tried:8,}{counts['refused']:9,}{counts['read']:7,}  {'1' if fault else '-'}", flush=True)
        if fault:
            print("\n".join(f"    {line}" for line in fault.splitlines()), flush=True)
    print(f"inputs: {total:,}; readers: {len(names)}; readers that failed: {failed}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
