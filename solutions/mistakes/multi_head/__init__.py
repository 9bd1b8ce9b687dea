"""Known answers to chapter 3, a module for each exercise of `solutions.multi_head`."""
