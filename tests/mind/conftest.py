"""The promises of stores are assertions too, though their modules are no tests of their own."""

import pytest

pytest.register_assert_rewrite(
    "tests.mind.made_memories",
    "tests.mind.promises_of_files",
    "tests.mind.promises_of_search",
    "tests.mind.promises_of_writing",
    "tests.mind.promises_together",
)
