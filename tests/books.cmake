# The contract of the books, on a toy engine.
rollback_test(books_equality books_equality_test.cpp)
rollback_test(books_random_walk books_random_walk_test.cpp)
rollback_test(books_plan books_plan_test.cpp)  # list by list
rollback_test(books_far_positions books_far_positions_test.cpp)
rollback_test(books_in_flight books_in_flight_test.cpp)  # several batches, pins, forks
rollback_test(books_observe books_observe_test.cpp)  # the device knows first
rollback_test(books_adopt books_adopt_test.cpp)  # states that the engine reads and writes itself
rollback_test(books_pages books_pages_test.cpp)  # that the engine hands out
rollback_test(books_pages_walk books_pages_walk_test.cpp)
rollback_test(books_pin_windows books_pin_windows_test.cpp)  # pins with window rows of their own
rollback_test(books_failure books_failure_test.cpp)
rollback_test(books_refusals books_refusals_test.cpp)
rollback_test(books_batch_refusals books_batch_refusals_test.cpp)
rollback_test(books_setup books_setup_test.cpp)
rollback_test(books_ring_bits ring_bits_test.cpp)
rollback_test(state_io state_io_test.cpp)  # saving and loading; needs xxHash's header
rollback_test(state_pin_windows state_pin_windows_test.cpp)
rollback_test(state_format state_format_test.cpp)
rollback_test(state_damage state_damage_test.cpp)
rollback_test(books_allocation books_allocation_test.cpp)  # replaces operator new

# One writer and any number of readers: `scripts/test tsan` runs it under ThreadSanitizer.
find_package(Threads REQUIRED)
rollback_test(threads threads_test.cpp Threads::Threads)

# Whatever is loaded: built and run by `scripts/test fuzz`, with clang's libFuzzer.
if(ROLLBACK_FUZZ)
  add_executable(fuzz_load fuzz/load_fuzz.cpp)
  target_link_libraries(fuzz_load PRIVATE rollback::rollback rollback_dev)
  target_compile_options(fuzz_load PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_load PRIVATE -fsanitize=fuzzer)
endif()
