# The contract of the books, on a toy engine.
rollback_test(books_equality books_equality_test.cpp)
rollback_test(books_random_walk books_random_walk_test.cpp)
rollback_test(books_plan books_plan_test.cpp)  # list by list
rollback_test(books_failure books_failure_test.cpp)
