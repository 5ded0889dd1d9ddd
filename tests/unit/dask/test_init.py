"""The extra is optional: without it the package says what to install."""

import sys

import pytest

import wms.dask
from wms.errors import Rejected


def test_without_dask_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wms.dask.cluster", None)
    with pytest.raises(Rejected, match=r"pip install 'wms\[dask\]'"):
        _ = wms.dask.WmsCluster
    with pytest.raises(AttributeError, match="no attribute Cluster"):
        _ = wms.dask.Cluster
