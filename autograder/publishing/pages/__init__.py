"""The Sphinx extension of every course: exercises as students see them, questions without answers.

sphinx:
  extra_extensions: [autograder.publishing.pages]
"""

from sphinx.application import Sphinx

from autograder.publishing import collect_garbage_seldom
from autograder.publishing.pages import question, student_view


def setup(app: Sphinx) -> dict:
    collect_garbage_seldom()
    student_view.setup(app)
    return question.setup(app)
