"""What runs a job, on the driver and in workers; docs/architecture.md has a table of the folders."""
