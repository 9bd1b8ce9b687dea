"""A class: the gradebook and its one writer, who judges, feedback pages, the report."""
