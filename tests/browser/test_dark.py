"""Every page in dark colours: no error, no other host, nothing that axe finds of WCAG 2.2 AA."""

import pytest

from .conftest import documents
from .sound import wrong_with


@pytest.mark.parametrize("name", documents())
def test_a_page_is_sound_wide_and_narrow(name, open_tab):
    assert wrong_with(name, "dark", open_tab) == []
