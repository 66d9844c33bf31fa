"""Questions to arrays get the answers that numpy's own functions give, which import `numpy.ma` and take longer."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap.array_queries import among, distinct, median, percentiles, without
from ghost.pcap.findings.observations import groups_of

from .labelled.faults import FAULTS
from .labelled.healthy import HEALTHY

INTS = st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 5), max_size=40).map(
    lambda each: np.array(each, np.int64)
)
FLOATS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40).map(np.array)


@given(INTS, INTS)
def test_sets_are_those_of_numpy(values, others):
    assert distinct(values).tolist() == np.unique(values).tolist()
    assert among(values, others).tolist() == np.isin(values, others).tolist()
    assert among(values.reshape(-1, 1), others.tolist()).tolist() == np.isin(values.reshape(-1, 1), others).tolist()
    assert without(values, others).tolist() == np.setdiff1d(values, others).tolist()


@given(FLOATS, st.lists(st.floats(0, 100), min_size=1, max_size=4))
def test_percentiles_are_those_of_numpy(values, shares):
    assert np.allclose(percentiles(values, shares), np.percentile(values, shares), rtol=1e-9, atol=1e-6)
    assert np.isclose(median(values), np.median(values), rtol=1e-9, atol=1e-6)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3), st.booleans()), max_size=30))
def test_rows_are_grouped_by_their_values_the_largest_group_first(entries):
    one, other = (np.array([entry[n] for entry in entries], np.int64) for n in (0, 1))
    rows = np.flatnonzero([entry[2] for entry in entries])
    found = [(values, mine.tolist()) for values, mine in groups_of(rows, one, other)]
    expected: dict[tuple[int, int], list[int]] = {}
    for row in rows.tolist():
        expected.setdefault((int(one[row]), int(other[row])), []).append(row)
    assert found == sorted(expected.items(), key=lambda group: (-len(group[1]), group[0]))


JUDGE_THEM_ALL = """
import sys
from pathlib import Path
from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
for capture in Path(sys.argv[1]).iterdir():
    find(analyse(capture))
    if "numpy.ma" in sys.modules:
        sys.exit(f"{capture.name} had numpy.ma imported")
"""


def test_a_capture_is_judged_without_masked_arrays(tmp_path):
    """They take longer to import than a small capture takes to be judged."""
    for name, scene in list({**FAULTS, **HEALTHY}.items())[::9]:
        scene.save(tmp_path / f"{name}.pcap", 1, scene.points[0])
    done = subprocess.run([sys.executable, "-c", JUDGE_THEM_ALL, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
