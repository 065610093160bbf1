"""What observers see of a job: totals, explanations, flame graphs, failures."""
