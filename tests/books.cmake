# The contract of the books, on a toy engine.
rollback_test(books_equality books_equality_test.cpp)
rollback_test(books_random_walk books_random_walk_test.cpp)
rollback_test(books_plan books_plan_test.cpp)  # list by list
rollback_test(books_in_flight books_in_flight_test.cpp)  # several batches, pins, forks
rollback_test(books_failure books_failure_test.cpp)
rollback_test(books_refusals books_refusals_test.cpp)
rollback_test(books_batch_refusals books_batch_refusals_test.cpp)
rollback_test(books_setup books_setup_test.cpp)
rollback_test(books_allocation books_allocation_test.cpp)  # replaces operator new

# One writer and any number of readers: `scripts/test tsan` runs it under ThreadSanitizer.
find_package(Threads REQUIRED)
rollback_test(threads threads_test.cpp Threads::Threads)
