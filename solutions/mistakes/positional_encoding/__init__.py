"""Known answers to chapter 5, a module for each exercise of `solutions.positional_encoding`."""
