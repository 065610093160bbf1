from __future__ import annotations

import threading

from headrace.util.shared_terminal import holding, when_free


def test_messages_wait_until_the_last_holder_of_the_terminal_is_done() -> None:
    said: list[str] = []
    with holding():
        with holding():
            other = threading.Thread(target=when_free, args=(lambda: said.append("FINISHED"),))
            other.start()
            other.join()
            said.append("row")
        said.append("border")

    assert said == ["row", "border", "FINISHED"]


def test_messages_are_printed_at_once_if_the_terminal_is_free() -> None:
    said: list[str] = []
    when_free(lambda: said.append("FINISHED"))

    assert said == ["FINISHED"]
