"""What the allocator gives back to the kernel, counted in page faults of processes of their own."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys
from masklab.inside_libc import keep_freed_memory
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("not kept")
for _ in range(3):
    bytearray(2**26)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    bytearray(2**26)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    run = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc alone")
def test_freed_memory_is_not_asked_for_again():
    """Ten arrays of 64 MiB, when they are fresh: 16,384 pages each, or 32 huge ones."""
    assert faults("default") > 300
    assert faults("keep") < 50
