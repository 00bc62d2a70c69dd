# Runs one case of a project that uses this one: configures it, builds it and runs what it built.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
endfunction()

set(package ${WORK}/package moved)  # a blank, and not where it was installed
list(JOIN package " " package)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS}
  -D CMAKE_BUILD_TYPE=Debug -D ROLLBACK_CUDA=OFF -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
if(STANDARD)
  list(APPEND configure -D CMAKE_CXX_STANDARD=${STANDARD})
endif()
set(project ${SOURCE}/tests/consumer/${CASE})
set(build ${WORK}/${CASE})

if(CASE STREQUAL "install")
  file(REMOVE_RECURSE ${WORK}/package "${package}")
  run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/package)
  file(RENAME ${WORK}/package "${package}")
  return()
endif()

file(REMOVE_RECURSE ${build})
if(CASE STREQUAL "refused")
  execute_process(
    COMMAND ${configure} -D WANTED=9 "-D CMAKE_PREFIX_PATH=${package}" -S ${SOURCE}/tests/consumer/installed -B ${build}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0 OR NOT output MATCHES "compatible with requested version" OR NOT output MATCHES "version: ${VERSION}")
    message(FATAL_ERROR "version 9 was not refused for its version (${result}):\n${output}")
  endif()
  return()
endif()

if(CASE STREQUAL "subdirectory")
  run("configure" ${configure} -D ROLLBACK_SOURCE=${SOURCE} -S ${project} -B ${build})
else()
  run("configure" ${configure} -D WANTED=0.1 "-D CMAKE_PREFIX_PATH=${package}" -S ${project} -B ${build})
endif()
run("build" ${CMAKE_COMMAND} --build ${build})
run("the program" ${build}/consumer)
