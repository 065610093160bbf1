"""`headrace sql`, where it needs neither a terminal nor Spark."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

from tests.postgres import free_port


def test_a_gateway_that_does_not_answer_is_named_with_the_option_that_chose_it(
    headrace: Callable[..., Result],
) -> None:
    address = f"localhost:{free_port()}"
    done = headrace("sql", "--gateway", address, "-e", "SHOW TABLES")
    assert done.exit_code == 1
    assert f"no answer from http://{address}" in done.output
    assert "choose another one with --gateway HOST:PORT" in done.output
