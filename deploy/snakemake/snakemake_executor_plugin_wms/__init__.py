"""What Snakemake looks for by the name of this package: the executor `wms`."""

from wms.snakemake.executor import WorkflowExecutor as Executor
from wms.snakemake.executor import WorkflowSettings as ExecutorSettings
from wms.snakemake.executor import common_settings

__all__ = ["Executor", "ExecutorSettings", "common_settings"]
