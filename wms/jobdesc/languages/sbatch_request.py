"""What the options of a batch script ask for together: tasks, processors, GPUs and the ids of an array's tasks."""

from typing import Final

from wms.jobdesc.array import INDEX, PLACEHOLDER
from wms.jobdesc.languages import common_values, slurm_values
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.sbatch_text import BatchScript, SbatchOption
from wms.jobdesc.loss_report import Origin

TASK: Final = "task"
"""The name of the parameter that holds the ids of an array's tasks."""


def origin_of(option: SbatchOption) -> Origin:
    """Return the name and the line of an option."""
    return Origin(f"--{option.name}", option.line)


class BatchRequest:
    """What the options of a script ask for together. Of an option that is given twice, the last counts."""

    def __init__(self, draft: JobDraft, script: BatchScript) -> None:
        self.draft = draft
        self.script = script
        self.said = {each.name: each for each in script.options}
        self.gpus = self._gpus()
        self.tasks = self._tasks()
        self.processors = self.tasks * self._number("cpus-per-task", 1)
        if "cpus-per-gpu" in self.said:
            self.processors = max(1, self.gpus) * self._number("cpus-per-gpu", 1)
        self.tasks_of_array = self._array()

    def text(self, name: str) -> str:
        """Return the value of an option; empty if it is not given."""
        return self.said[name].value if name in self.said else ""

    def plain(self, text: str) -> str:
        """Return a text in which nothing is a placeholder of the array."""
        if not self.tasks_of_array:
            return text
        return PLACEHOLDER.sub(
            lambda found: f"{{{found[0]}}}" if (found[1] or found[2]) in (TASK, INDEX) else found[0], text
        )

    # --- numbers -----------------------------------------------------------------------------------

    def _number(self, name: str, otherwise: int) -> int:
        if name not in self.said:
            return otherwise
        found = common_values.whole_number(self.text(name))
        if found is None or found < 1:
            self.draft.problem(
                origin_of(self.said[name]), f"{self.text(name)[:40]!r} is no number of at least 1"
            )
            return otherwise
        return found

    def _tasks(self) -> int:
        each = self._number("ntasks-per-node", 0)
        tasks = self._number("ntasks", 0)
        if each and tasks > each:
            origin = origin_of(self.said["ntasks-per-node"])
            self.draft.problem(origin, f"{tasks} tasks, {each} a node, need several nodes; a job runs on one")
        of_gpus = self.gpus * self._number("ntasks-per-gpu", 0)
        return max(1, tasks or each or of_gpus)

    def _gpus(self) -> int:
        found = [
            slurm_values.gpus(self.text(name), in_gres=name == "gres")
            for name in ("gpus", "gpus-per-node", "gres")
        ]
        each = slurm_values.gpus(self.text("gpus-per-task"))
        tasks = self._number("ntasks", 0) or self._number("ntasks-per-node", 1)
        return max(*(count or 0 for count in found), (each or 0) * tasks)

    def _array(self) -> tuple[int, ...]:
        said = self.text("array")
        if not said:
            return ()
        found = slurm_values.task_ids(said)
        if not found:
            self.draft.problem(origin_of(self.said["array"]), f"{said[:60]!r} is no list of task ids")
        return found
