"""The promises of stores are assertions too, though their module is no test of its own."""

import pytest

pytest.register_assert_rewrite("tests.mind.store_promises")
