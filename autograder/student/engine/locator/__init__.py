"""Finds the expression at which a wrong answer leaves the values of right ones."""
