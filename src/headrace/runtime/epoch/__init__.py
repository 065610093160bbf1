"""One epoch: its plan and its reports, where subtasks run, how large it is, and how its time was spent."""
