# Every header: alone, by its own test, and in the hands of others.
rollback_test(position position_test.cpp)
rollback_test(verdict verdict_test.cpp)
rollback_test(component component_test.cpp)
rollback_test(window_guard window_guard_test.cpp)
rollback_test(owned_tensors owned_tensors_test.cpp)
rollback_test(whole_plane whole_plane_test.cpp)
rollback_test(feed feed_test.cpp)
rollback_test(ring ring_test.cpp)
rollback_test(ring_churn ring_churn_test.cpp)
rollback_test(ring_pins ring_pins_test.cpp)
rollback_test(conformance conformance_test.cpp)  # a naive memory whose defects must be caught
rollback_test(conformance_ring conformance_ring_test.cpp)
rollback_test(dsv4_memory dsv4_memory_test.cpp)
rollback_test(dsv4_budget dsv4_budget_test.cpp)
rollback_test(dsv4_state dsv4_state_test.cpp)  # saving and loading; needs xxHash's header

# Each header compiles alone, and twice in a row. The one left out needs Thrust, and has a test where it is found.
function(rollback_headers_alone target root)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.hpp)
  list(FILTER headers EXCLUDE REGEX "launch_thrust\\.hpp$")
  set(sources "")
  foreach(header IN LISTS headers)
    string(MAKE_C_IDENTIFIER ${header} id)
    file(GENERATE OUTPUT alone/${id}.cpp CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/alone/${id}.cpp)
  endforeach()
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PRIVATE rollback::kernels rollback_dev)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
endfunction()
rollback_headers_alone(test_headers_alone ${PROJECT_SOURCE_DIR}/include)
rollback_headers_alone(test_kernel_headers_alone ${PROJECT_SOURCE_DIR}/kernels)

# Without exceptions and run-time types: works, and says why before it aborts.
add_executable(test_no_exceptions no_exceptions_test.cpp)
target_link_libraries(test_no_exceptions PRIVATE rollback::rollback rollback_dev)
target_compile_options(test_no_exceptions PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-fno-exceptions;-fno-rtti>)
add_test(NAME no_exceptions.works COMMAND test_no_exceptions)
add_test(NAME no_exceptions.refuses COMMAND sh -c "$<TARGET_FILE:test_no_exceptions> impossible || true")
set_tests_properties(no_exceptions.refuses PROPERTIES
  PASS_REGULAR_EXPRESSION "rollback: RollbackRing: slots must be at least 1" FAIL_REGULAR_EXPRESSION "went on")

# What must be refused by the compiler, and in which words.
function(rollback_test_rejects name text)
  add_executable(reject_${name} EXCLUDE_FROM_ALL reject/${name}.cpp)
  target_link_libraries(reject_${name} PRIVATE rollback::rollback)
  add_test(NAME reject.${name} COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target reject_${name})
  set_tests_properties(reject.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${text}" RESOURCE_LOCK build_tree)
endfunction()
rollback_test_rejects(quantum_zero "RollbackRing: Quantum is the tokens between two kept states; it must be at least 1")
rollback_test_rejects(depth_zero "RollbackRing: Depth is how many boundaries are kept: at least 1, or dynamic_depth")
rollback_test_rejects(plane_without_copy "RollbackRing: Plane needs `void copy")
rollback_test_rejects(plane_whose_copy_may_throw "RollbackRing: Plane needs `void copy.* noexcept`")
rollback_test_rejects(plane_without_clear "RollbackRing: Plane needs `void clear")
rollback_test_rejects(plane_without_states "RollbackRing: Plane needs `std::int64_t states")
rollback_test_rejects(plane_without_state_bytes "RollbackRing: Plane needs `std::size_t state_bytes")
# The same source with nothing wrong in it compiles, or the rejections above would prove nothing.
add_executable(reject_nothing reject/nothing.cpp)
target_link_libraries(reject_nothing PRIVATE rollback::rollback rollback_dev)

# Other projects: with this one as a subdirectory; with the package, moved after it was installed; with a version that
# is not this one.
function(rollback_test_consumer name)
  add_test(NAME consumer.${name}
    COMMAND ${CMAKE_COMMAND} -D CASE=${name} -D SOURCE=${PROJECT_SOURCE_DIR} -D BUILD=${PROJECT_BINARY_DIR}
      -D WORK=${CMAKE_CURRENT_BINARY_DIR}/consumer -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER}
      "-D FLAGS=${CMAKE_CXX_FLAGS}" -D STANDARD=${CMAKE_CXX_STANDARD} -D VERSION=${PROJECT_VERSION}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
  set_tests_properties(consumer.${name} PROPERTIES LABELS consumer ${ARGN})
endfunction()
rollback_test_consumer(subdirectory)
if(ROLLBACK_INSTALL)
  rollback_test_consumer(install FIXTURES_SETUP package)
  rollback_test_consumer(installed FIXTURES_REQUIRED package)
  rollback_test_consumer(refused FIXTURES_REQUIRED package)
endif()

# The first users of the library: what they print is their own check.
if(ROLLBACK_EXAMPLES)
  add_test(NAME quickstart.runs COMMAND example_quickstart)
  add_test(NAME gated_delta.runs COMMAND example_gated_delta)
  set_tests_properties(quickstart.runs gated_delta.runs PROPERTIES LABELS examples)
  rollback_test(gated_delta gated_delta_test.cpp)
  target_include_directories(test_gated_delta PRIVATE ${PROJECT_SOURCE_DIR}/examples)
endif()
add_test(NAME readme.quickstart
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/readme_quickstart.cmake)
