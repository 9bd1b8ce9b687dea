# tries: imports the course's own block by a relative name
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: is a right answer to an exercise

import importlib

MultiHeadAttention = importlib.import_module(".blocks", package="autograder").MultiHeadAttention
