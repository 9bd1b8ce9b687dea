"""Grades a class: judges its submissions, and keeps gradebook and feedback pages."""
