"""What goes by the order of rows: top-N, deduplication, sorting; and full changelogs of upserts."""

from __future__ import annotations

from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.translate.context import Translation, names_of, order_of
from headrace.types.logical import quote_name

__all__ = ["deduplicate", "epoch_sort", "normalize", "rank", "temporal_sort", "window_rank"]


def rank(to: Translation, node: p.Rank) -> Stream:
    """Keep the first rows of each group."""
    columns = f.columns_of(node.input.schema)
    output = f.columns_of(node.schema)
    declaration = d.RankDeclaration(
        output,
        names_of(columns[key] for key in node.partition),
        order_of(node.order, columns),
        node.last,
        node.first,
        rank_column=output[-1] if node.has_number else None,
        **to.traits(node),
    )
    return to.add(declaration, node, to.renamed_inputs(node, columns), output)


def window_rank(to: Translation, node: p.WindowRank) -> Stream:
    """Keep the first rows of each window, or one of each key."""
    columns = f.columns_of(node.input.schema)
    output = f.columns_of(node.schema)
    end = f.column("__window_end", BIGINT)
    inputs = to.with_millis(node, columns, node.window[1], end)
    keys = names_of(columns[key] for key in (*node.window, *node.partition))
    order = order_of(node.order, columns)
    made = (*output[: len(columns)], end, *output[len(columns) :])
    declaration: d.RankDeclaration | d.DeduplicateDeclaration
    if node.is_deduplication:
        (time,) = order
        declaration = d.DeduplicateDeclaration(
            made, keys, time.column, not time.ascending, window_end=end.name, **to.traits(node, 0)
        )
    else:
        declaration = d.RankDeclaration(
            made,
            keys,
            order,
            node.last,
            node.first,
            rank_column=output[-1] if node.has_number else None,
            window_end=end.name,
            **to.traits(node, 0),
        )
    stream = to.add(declaration, node, inputs, declaration.output)
    return stream.select([(quote_name(each.name), each) for each in output])


def temporal_sort(to: Translation, node: p.TemporalSort) -> Stream:
    """Hold rows until time has passed them, as a window that ends with the row's own time."""
    columns = f.columns_of(node.schema)
    over = f.column("__over", BIGINT)
    inputs = []
    (first, *_) = node.order
    for _, stream in to.renamed_inputs(node, columns):
        at = stream.sql(first.expression)
        timed = stream.then(steps.Where(f"{at} IS NOT NULL"))
        ms = f"{to.millis(timed, first.expression)} + 1L"
        inputs.append((0, timed.select([*timed.chosen(range(len(columns))), (ms, over)])))
    declaration = d.RankDeclaration(
        (*columns, over),
        (),
        order_of(node.order, columns),
        None,
        window_end=over.name,
        **to.traits(node, 0),
    )
    stream = to.add(declaration, node, inputs, declaration.output)
    return stream.select(stream.chosen(range(len(columns))))


def epoch_sort(to: Translation, node: p.TemporalSort) -> Stream:
    """Sort the rows of an epoch after their processing time."""
    columns = f.columns_of(node.schema)
    declaration = d.EpochSortDeclaration(columns, order_of(node.order[1:], columns), **to.traits(node, 0))
    return to.add(declaration, node, to.renamed_inputs(node, columns), columns)


def deduplicate(to: Translation, node: p.Deduplicate) -> Stream:
    """Keep the first or the last row of each key."""
    columns = f.columns_of(node.input.schema)
    keys = names_of(columns[key] for key in node.keys)
    if not node.is_rowtime:
        declaration = d.DeduplicateDeclaration(columns, keys, None, node.keep_last, **to.traits(node))
        return to.add(declaration, node, to.renamed_inputs(node, columns), columns)
    time = f.column("__time", BIGINT)
    inputs = to.with_millis(node, columns, node.time_index, time)
    timed = d.DeduplicateDeclaration((*columns, time), keys, time.name, node.keep_last, **to.traits(node))
    stream = to.add(timed, node, inputs, timed.output)
    return stream.select(stream.chosen(range(len(columns))))


def normalize(to: Translation, node: p.ChangelogNormalize) -> Stream:
    """Make a full changelog of upserts."""
    columns = f.columns_of(node.schema)
    keys = names_of(columns[key] for key in node.keys)
    declaration = d.ChangelogNormalizeDeclaration(columns, keys, **to.traits(node))
    return to.add(declaration, node, to.renamed_inputs(node, columns), columns)
