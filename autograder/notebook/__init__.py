"""A student's notebook: read as hostile text, rebuilt, judged cell by cell, shown inert."""
