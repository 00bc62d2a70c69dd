# The contract of the books, on a toy engine.
