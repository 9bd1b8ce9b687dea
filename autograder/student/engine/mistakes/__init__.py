"""Names what an answer looks like: known mistakes, and guesses as guesses."""
