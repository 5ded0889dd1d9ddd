"""A cluster of Dask workers that are jobs at the sites: `from wms.dask import WmsCluster`. It needs `pip install 'wms[dask]'`."""

from typing import TYPE_CHECKING, Any

from wms.errors import Rejected

if TYPE_CHECKING:
    from wms.dask.cluster import WmsCluster

__all__ = ["WmsCluster"]


def __getattr__(name: str) -> Any:
    if name != "WmsCluster":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    try:
        from wms.dask.cluster import WmsCluster
    except ModuleNotFoundError as missing:
        raise Rejected("NO_DASK", f"Dask is not installed: {missing}", "pip install 'wms[dask]'") from missing
    return WmsCluster
