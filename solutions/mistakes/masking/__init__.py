"""Known answers to chapter 4, a module for each exercise of `solutions.masking`."""
