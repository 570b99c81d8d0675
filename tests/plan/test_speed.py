"""The speed of this machine: updates timed, as assumptions that the plan reads."""

import torch
import yaml

from masklab.plan import read_assumptions, speed
from masklab.plan.costs import Device

WIDTHS = (16, 64, 128)


def test_what_is_measured_is_what_an_update_takes(tmp_path):
    """Within a factor of five, as other work may come between."""
    entry = read_assumptions()["devices"]["cpu"]
    found = speed.measured(entry, cores=1, widths=WIDTHS)
    (tmp_path / "here.yaml").write_text(yaml.safe_dump({"devices": {"cpu": found}}))
    device = Device("cpu", read_assumptions(tmp_path / "here.yaml")["devices"]["cpu"])
    threads = torch.get_num_threads()
    for width in WIDTHS:
        (taken,) = speed._seconds([("fp32", width, speed.BATCH, speed.LENGTH)])
        planned = device.seconds(speed._flops(width, speed.BATCH, speed.LENGTH), speed.LAYERS, width)
        assert taken / 5 < planned < 5 * taken
    torch.set_num_threads(threads)
    assert found["codes_per_second"] > 0 and set(found["layer_seconds"]) == set(entry["layer_seconds"])
