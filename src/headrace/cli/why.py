"""`headrace why`: which input records, epochs and state produced an output row."""

from __future__ import annotations

import click

from headrace.cli.connection import cluster_options
from headrace.cli.recordings import find_job_recording
from headrace.cli.text import print_json

__all__ = ["why"]


@click.command(short_help="Show which input records and state produced an output row.")
@click.argument("job", metavar="JOB")
@cluster_options
@click.option("--row", metavar="TEXT", help="The row, as the job printed it, or a part of it.")
@click.option("--key", metavar="KEY", help="A key of a keyed operator: its last row.")
@click.option("--epoch", type=int, metavar="N", help="Only rows of this epoch; otherwise the last match.")
@click.option("--all", "shows_all", is_flag=True, help="List every record, not only the last 20 of a key.")
def why(
    job: str,
    address: str | None,
    properties: dict[str, str],
    as_json: bool,
    row: str | None,
    key: str | None,
    epoch: int | None,
    shows_all: bool,
) -> None:
    """Explain a row that JOB wrote: the input records it was made of, and the state in each epoch.

    JOB is a directory: that of recordings or checkpoints, a checkpoint, or a savepoint; or a running job, by its id or
    name. Its epochs are recorded if headrace.replay.keep is set. The epochs that matter are replayed in this process,
    without Spark, and the state is followed back as far as it is recorded. This loads and runs what is in the
    recording: use only recordings that you trust.
    """
    from headrace.why.question import why as ask
    from headrace.why.text import render

    if (row is None) == (key is None):
        raise click.UsageError("give --row or --key")
    answer = ask(find_job_recording(job, address, properties), row=row, key=key, epoch=epoch)
    if as_json:
        print_json(answer.as_json())
    else:
        click.echo(render(answer, None) if shows_all else render(answer))
