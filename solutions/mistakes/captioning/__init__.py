"""Known answers to the exercises of chapter 12, a module each."""
