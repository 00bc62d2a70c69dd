# The contract of the books, on a toy engine.
rollback_test(books_equality books_equality_test.cpp)
