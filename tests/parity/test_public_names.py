"""Each of PyFlink's public names works, or is refused with a reason that the documentation gives."""

from __future__ import annotations

from tests.parity.public_names import NAMES, PAGE, missing_names, page, reasons


def test_every_name_is_there_or_has_a_reason() -> None:
    known = reasons()
    unexplained = [
        f"{name}: {what}" for name, what in missing_names() if not any(each.covers(name) for each in known)
    ]
    assert not unexplained, "add them, or list them in other_gaps.toml:\n" + "\n".join(unexplained)


def test_every_reason_of_the_second_list_is_still_needed() -> None:
    missing = [name for name, _ in missing_names()]
    assert all(any(each.covers(name) for name in missing) for each in reasons() if each.members)


def test_a_missing_name_raises_an_error() -> None:
    plain = [f"{name}: {what}" for name, what in missing_names() if what != "refused"]
    assert not plain, "use missing_names() or MissingMember:\n" + "\n".join(plain)


def test_the_inventory_is_the_whole_of_pyflink() -> None:
    count = sum(
        len(str(module["names"]).split()) + sum(len(own.split()) for own in module["members"].values())  # type: ignore[attr-defined]
        for module in NAMES.values()
    )
    assert count > 2_800


def test_the_inventory_has_what_modules_have_from_each_other() -> None:
    assert "Time" in NAMES["pyflink.datastream.window"]["imports"]["pyflink.common.time"]  # type: ignore[index]
    assert sum(len(str(module["imports"]).split()) for module in NAMES.values()) > 500


def test_the_page_lists_what_is_missing() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"
