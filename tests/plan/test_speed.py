"""The speed of this machine: updates timed, as assumptions that the plan reads."""

import torch
import yaml

from masklab.plan import read_assumptions, speed
from masklab.plan.costs import Device

WIDTHS = (16, 64)


def test_what_is_measured_is_what_an_update_takes(tmp_path):
    """Within a factor of five, as other work may come between."""
    entry = read_assumptions()["devices"]["cpu"]
    found = speed.measured(entry, cores=1, widths=WIDTHS)
    (tmp_path / "here.yaml").write_text(yaml.safe_dump({"devices": {"cpu": found}}))
    assumed = read_assumptions(tmp_path / "here.yaml")["devices"]["cpu"]
    device = Device("cpu", assumed)
    timed = [speed.Timed(16), speed.Timed(64), speed.Timed(16, positions="disentangled"), speed.Timed(64, copies=5)]
    threads = torch.get_num_threads()
    for each, taken in zip(timed, speed._seconds(timed), strict=True):
        planned = each.copies * device.of(each.encoder(), each.flops(), speed.LAYERS)
        planned *= device.at(each.width, "side_by_side") if each.copies > 1 else 1
        assert taken / 5 < planned < 5 * taken
    torch.set_num_threads(threads)
    assert found["codes_per_second"] > 0 and set(found["layer_seconds"]) == set(entry["layer_seconds"])
    assert set(found["positions"]) == {"disentangled", "relative"}
    assert assumed["side_by_side"] == entry["side_by_side"] | {64: found["side_by_side"][64]}


def test_positions_that_take_longer_are_planned_so():
    entry = read_assumptions()["devices"]["cpu"] | {"positions": {"disentangled": 1.5}}
    plain, other = (speed.Timed(64, positions=positions).encoder() for positions in ("absolute", "disentangled"))
    device = Device("cpu", entry)
    planned = device.of(plain, 1e9, 2)
    assert planned == device.seconds(1e9, 2, 64) and device.of(other, 1e9, 2) == 1.5 * planned
