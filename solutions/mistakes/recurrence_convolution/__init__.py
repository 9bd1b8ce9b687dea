"""Known answers to chapter 8, a module for each exercise of `solutions.recurrence_convolution`."""
