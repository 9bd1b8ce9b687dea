"""Known answers to chapter 10, a module for each exercise of `solutions.bert`."""
