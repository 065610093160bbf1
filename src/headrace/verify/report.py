"""The result of a verification, as text, as a test to keep, and as a page."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from headrace.config.configuration import Configuration
from headrace.graph.job_graph import JobGraph
from headrace.verify.inputs import source_names
from headrace.verify.scenario import Event, Scenario, counted
from headrace.verify.shrinking import VerifyCase
from headrace.verify.verification import VerifyDifference, VerifyResult, VerifySettings

#: Records of each source that are listed.
_LISTED = 10
_NOTHING = (
    "NOTHING WAS COMPARED: no sink got a row in the run without faults. Give the job input that leads to output "
    "(--records, --input), or name the files that it writes (--output)."
)


def text_report(result: VerifyResult, job: JobGraph) -> str:
    """Describe a result for the terminal."""
    runs, records = counted(result.runs, "run"), counted(result.records, "input record")
    head = f"job {result.job_name!r}: {runs} in {result.seconds:.0f} s, {records}"
    lines = [head, *(f"note: {note}" for note in result.notes)]
    if result.difference is not None:
        lines += _difference_lines(result.difference, job)
    if result.findings:
        lines.append("what `headrace check` says about the job:")
        lines += [f"  {line}" for finding in result.findings for line in finding.text().splitlines()]
    if result.is_empty:
        lines.append(_NOTHING)
    elif result.is_clean:
        lines.append("no differences: the output was the same in every run")
    return "\n".join(lines)


def _difference_lines(difference: VerifyDifference, job: JobGraph) -> list[str]:
    happened = difference.case.scenario.lines() or ["nothing was changed: the same run was repeated"]
    lines = [f"found: {difference.title}", f"  {difference.explanation}", "the run that differs:"]
    lines += [f"  {line}" for line in happened]
    lines.append("its input:")
    names = source_names(job)
    for vertex_id, records in difference.case.inputs.items():
        lines.append(f"  {names[vertex_id]}: {counted(len(records), 'record')}")
        lines += [f"    {record.value!r}" for record in records[:_LISTED]]
        if len(records) > _LISTED:
            lines.append(f"    ... {counted(len(records) - _LISTED, 'more record')}")
    lines.append("its output, compared with the plain run:")
    return lines + [f"  {row}" for row in difference.rows]


def kept_test(
    difference: VerifyDifference,
    job: JobGraph,
    program: str,
    arguments: Sequence[str],
    settings: VerifySettings,
    options: Mapping[str, str] | None = None,
    alias: bool | None = None,
) -> str:
    """Write the difference as a test for pytest.

    Args:
        difference: What was found.
        job: The job.
        program: The path of its program, from where the test will run.
        arguments: Those of the program.
        settings: Those of the command.
        options: Those that the command was given, by their keys. Secrets are left out.
        alias: Whether `import pyflink` imports headrace's modules, if the command was told so.
    """
    scenario = difference.case.scenario
    names = source_names(job)
    records = {
        names[vertex_id]: [record.index for record in kept]
        for vertex_id, kept in difference.case.inputs.items()
    }
    given = _given(arguments, settings, options or {}, alias)
    more = "".join(f", {name}={value!r}" for name, value in given.items())
    name = re.sub(r"\W", "_", Path(program).stem)
    used = ("Event", "Interruption", "Scenario") if scenario.events else ("Scenario",)
    imports = [f"from headrace.verify.scenario import {', '.join(used)}"]
    if scenario.live_faults:
        imports.insert(0, "from headrace.testing.live_faults import LiveFault")
    if scenario.faults:
        imports.insert(0, "from headrace.testing.mini_cluster import Fault, TaskAttempt")
    body = [
        *imports,
        "from headrace.verify.verification import verify_case",
        "",
        "",
        f"def test_{name}_seed_{scenario.seed}():",
        f'    """{_sentence(difference.title)}."""',
        f"    scenario = {scenario_text(scenario)}",
        f"    kept = {records!r}",
        f"    verify_case({program!r}, scenario, kept=kept{more})",
    ]
    return "\n".join(body) + "\n"


def _given(
    arguments: Sequence[str], settings: VerifySettings, options: Mapping[str, str], alias: bool | None
) -> dict[str, object]:
    """Return what of the command line a test has to repeat, by the names of `verify_case`."""
    plain = VerifySettings()
    given: dict[str, object] = {
        name: getattr(settings, name)
        for name in ("records", "outputs", "key", "only_last", "ignored")
        if getattr(settings, name) != getattr(plain, name)
    }
    if arguments:
        given["arguments"] = tuple(arguments)
    kept_options = {key: value for key, value in options.items() if not Configuration().is_secret(key)}
    if kept_options:
        given["options"] = kept_options
    if alias is not None:
        given["alias"] = alias
    return given


def _sentence(title: str) -> str:
    return title[0].upper() + title[1:]


def scenario_text(scenario: Scenario) -> str:
    """Write a scenario as the expression that makes it."""
    plain = Scenario()
    parts = []
    for each in fields(Scenario):
        value = getattr(scenario, each.name)
        if value == getattr(plain, each.name):
            continue
        if each.name == "events":
            shown = "".join(f"{_event_text(event)}, " for event in value)
            parts.append(f"events=({shown.rstrip()})")
        elif each.name == "faults":
            shown = "".join(f"({place!r}, {fault!s}), " for place, fault in value)
            parts.append(f"faults=({shown.rstrip()})")
        elif each.name == "live_faults":
            shown = "".join(f"LiveFault({step}, {kind!r}), " for step, kind in value)
            parts.append(f"live_faults=({shown.rstrip()})")
        else:
            parts.append(f"{each.name}={value!r}")
    return f"Scenario({', '.join(parts)})"


def _event_text(event: Event) -> str:
    parallelism = "" if event.parallelism is None else f", {event.parallelism}"
    return f"Event({event.after_epochs}, {event.kind!s}{parallelism})"


def html_report(result: VerifyResult, job: JobGraph, test: str | None) -> str:
    """Write the result as a page that needs nothing else."""
    status = "no differences" if result.is_clean else "differences found"
    if result.is_empty:
        status = "nothing was compared"
    parts = [f"<h1>{html.escape(result.job_name)}: {status}</h1>"]
    rows = {
        "runs": str(result.runs),
        "seconds": f"{result.seconds:.1f}",
        "input records": str(result.records),
        "rows compared in each run": str(result.compared),
    }
    parts.append(_table(rows))
    parts += [f"<p>{html.escape(note)}</p>" for note in result.notes]
    if result.is_empty:
        parts.append(f"<p>{html.escape(_NOTHING)}</p>")
    if result.difference is not None:
        parts += _difference_html(result.difference.case, result.difference, job)
    if result.findings:
        parts.append("<h3>What <code>headrace check</code> says about the job</h3>")
    for finding in result.findings:
        parts.append(f"<pre>{html.escape(finding.text())}</pre>")
    if test is not None:
        parts.append(f"<h2>A test to keep</h2><pre>{html.escape(test)}</pre>")
    style = (
        ":root{color-scheme:light dark}body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "td{padding:.2em 1em .2em 0}pre{overflow:auto}"
    )
    body = "\n".join(parts)
    title = html.escape(f"headrace verify: {result.job_name}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{style}</style></head><body>\n{body}\n</body></html>\n"
    )


def _difference_html(case: VerifyCase, difference: VerifyDifference, job: JobGraph) -> list[str]:
    happened = case.scenario.lines() or ["nothing was changed: the same run was repeated"]
    parts = [
        f"<h2>{html.escape(_sentence(difference.title))}</h2><p>{html.escape(difference.explanation)}</p>",
        "<h3>The run that differs</h3>",
        _list(happened),
        "<h3>Its input</h3>",
    ]
    names = source_names(job)
    for vertex_id, records in case.inputs.items():
        shown = f"{names[vertex_id]}: {counted(len(records), 'record')}"
        parts.append(f"<p>{html.escape(shown)}</p>")
        listed = [repr(record.value) for record in records[: 2 * _LISTED]]
        if len(records) > len(listed):
            listed.append(f"... {counted(len(records) - len(listed), 'more record')}")
        parts.append(_list(listed))
    return [*parts, "<h3>Its output, compared with the plain run</h3>", _list(difference.rows)]


def _list(items: object) -> str:
    assert isinstance(items, list | tuple)
    return "<ul>" + "".join(f"<li><code>{html.escape(item)}</code></li>" for item in items) + "</ul>"


def _table(rows: dict[str, str]) -> str:
    cells = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows.items())
    return f"<table>{cells}</table>"
