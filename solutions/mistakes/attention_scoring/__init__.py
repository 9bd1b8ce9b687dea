"""Known answers to chapter 2, a module for each exercise of `solutions.attention_scoring`."""
