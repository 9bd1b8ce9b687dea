"""Known answers to chapter 7, a module for each exercise of `solutions.transformer`."""
