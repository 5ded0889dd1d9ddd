"""How fair a simulated schedule was."""

import numpy as np
import pytest

from wms.simulation.fairness import entitled, fairness, jain, spent


def test_usage_is_cut_by_periods():
    begins, ends, cores = np.array([0.0, 5.0]), np.array([12.0, 6.0]), np.array([1.0, 3.0])
    assert spent(begins, ends, cores, np.array([0.0, 10.0, 20.0])).tolist() == [13.0, 2.0]


def test_entitlement_is_max_min():
    used, shares = np.array([9.0, 1.0, 0.0]), np.array([1.0, 1.0, 2.0])
    assert entitled(used, np.array([9.0, 9.0, 9.0]), shares).tolist() == [2.5, 2.5, 5.0]
    assert entitled(used, np.array([9.0, 9.0, 2.0]), shares).tolist() == [4.0, 4.0, 2.0]
    assert entitled(used, np.array([9.0, 1.0, 0.0]), shares).tolist() == [9.0, 1.0, 0.0]


def test_fairness_by_hand():
    used = np.array([[8.0], [2.0]])
    found = fairness(used, np.array([[10.0], [10.0]]), np.array([1.0, 1.0]))
    assert found.jain == pytest.approx(1.0 / (2 * (0.8**2 + 0.2**2)))
    assert found.deviation == pytest.approx(0.3)
    assert found.by_group == pytest.approx((0.3, -0.3))
    assert fairness(used, used, np.array([1.0, 1.0])).jain == pytest.approx(1)
    assert jain(np.array([1.0, 0.0, 0.0])) == pytest.approx(1 / 3)
