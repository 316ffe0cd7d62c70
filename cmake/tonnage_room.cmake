# tonnage_room(name [USES room…] [VENDOR header-prefix…]): the library of src/<name>, and its test
# binary from *_test.cc. Naming a room that was not declared yet stops the configure step, so a cycle
# cannot be written.
set_property(GLOBAL PROPERTY TONNAGE_ROOMS "")

function(tonnage_room name)
  cmake_parse_arguments(ARG "" "" "USES;VENDOR" ${ARGN})
  get_property(known GLOBAL PROPERTY TONNAGE_ROOMS)
  foreach(used IN LISTS ARG_USES)
    if(NOT used IN_LIST known)
      message(FATAL_ERROR "room '${name}' uses '${used}', which is not listed above it in src/CMakeLists.txt")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY TONNAGE_ROOMS ${name})

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  set(uses ${ARG_USES})
  list(TRANSFORM uses PREPEND tonnage_)
  if(sources)
    add_library(tonnage_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(tonnage_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tonnage_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(tonnage_${name} ${scope} ${uses} tonnage_options fmt::fmt)
  foreach(vendor IN LISTS ARG_VENDOR)
    if(TARGET tonnage_vendor_${vendor})
      target_link_libraries(tonnage_${name} ${scope} tonnage_vendor_${vendor})
    endif()
  endforeach()
  if(tests AND TONNAGE_TESTS)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE tonnage_${name} tonnage_testkit GTest::gtest_main GTest::gtest)
    tonnage_register_tests(${name}_test)
  endif()
endfunction()

# One ctest entry per test case; `label` sorts kinds (unit, sim, integration, …).
function(tonnage_register_tests target)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "TONNAGE_BIN=${CMAKE_BINARY_DIR}/bin"  # a list of two would not survive gtest_discover_tests
    ENVIRONMENT_MODIFICATION "TONNAGE_SOURCE=set:${CMAKE_SOURCE_DIR}")
endfunction()
