"""The folder that needs no Python: when it is built again."""

from scripts.shipping.folder import ALWAYS, inputs_digest


def test_a_folder_with_another_part_is_another_folder() -> None:
    assert inputs_digest([ALWAYS]) == inputs_digest([ALWAYS])
    assert inputs_digest([ALWAYS]) != inputs_digest([ALWAYS, "openai"])
