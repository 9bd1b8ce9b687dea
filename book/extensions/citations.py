"""Citations as the notebooks have them: (Nadaraya, 1964) and Nadaraya (1964), in round brackets."""

from dataclasses import dataclass, field

import pybtex.plugin
import sphinxcontrib.bibtex.plugin
from sphinx.application import Sphinx
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle


def _round() -> BracketStyle:
    return BracketStyle(left="(", right=")", sep="; ")


@dataclass
class RoundAuthorYear(AuthorYearReferenceStyle):
    """Author and year in round brackets, papers separated by semicolons."""

    bracket_parenthetical: BracketStyle = field(default_factory=_round)
    bracket_textual: BracketStyle = field(default_factory=_round)
    bracket_author: BracketStyle = field(default_factory=_round)
    bracket_label: BracketStyle = field(default_factory=_round)
    bracket_year: BracketStyle = field(default_factory=_round)


def _looked_up_once() -> None:
    """Register pybtex's backends: it would search all packages for one at every citation."""
    for name in ("docutils", "plaintext"):
        backend = pybtex.plugin.find_plugin("pybtex.backends", name)
        pybtex.plugin.register_plugin("pybtex.backends", name, backend, force=True)


def setup(app: Sphinx) -> dict:
    _looked_up_once()
    sphinxcontrib.bibtex.plugin.register_plugin(
        "sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundAuthorYear
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
