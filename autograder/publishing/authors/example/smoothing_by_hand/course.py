"""What this course is: its title, its chapters in the book's order, what its notebooks need."""

TITLE = "Smoothing by Hand"
NAME = "smoothing-by-hand"  # of what students download
CHAPTERS = ("averages",)
PACKAGES = ("numpy", "matplotlib")  # that a student installs
PRELOADED = ()  # what the sandbox imports beforehand, besides NumPy, matplotlib and `check`
BLOCKS = ""  # a module with what stands in for answers that are not right yet, if there is one
