"""Known answers to chapter 9, a module for each exercise of `solutions.language_model`."""
