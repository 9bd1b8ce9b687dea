"""Known answers to chapter 11, a module for each exercise of `solutions.vision_transformer`."""
