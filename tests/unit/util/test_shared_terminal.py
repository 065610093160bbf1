from __future__ import annotations

import threading

from headrace.util.shared_terminal import holding, when_free


def test_what_others_say_waits_until_the_last_holder_is_done() -> None:
    said: list[str] = []
    with holding():
        with holding():
            other = threading.Thread(target=when_free, args=(lambda: said.append("FINISHED"),))
            other.start()
            other.join()
            said.append("row")
        said.append("border")

    assert said == ["row", "border", "FINISHED"]


def test_it_is_said_at_once_where_nobody_holds_the_terminal() -> None:
    said: list[str] = []
    when_free(lambda: said.append("FINISHED"))

    assert said == ["FINISHED"]
