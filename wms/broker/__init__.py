"""Pure decisions of the resource broker: which computing element would finish a job first, and the states of its placement there."""
