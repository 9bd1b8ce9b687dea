"""The right answers, a module for each chapter."""
