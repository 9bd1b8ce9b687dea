"""What is judged: a package for each chapter, in it a module for each exercise; no answers."""
