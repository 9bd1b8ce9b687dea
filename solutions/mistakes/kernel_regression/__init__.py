"""Known answers to chapter 1, a module for each exercise of `solutions.kernel_regression`."""
