# TONNAGE_FRONT=OFF: workers/kit and tonnage-worker-torch alone, for a machine that has a PyTorch and a compiler and
# little else. What Debian would bring is taken from where it is.
if(NOT TARGET fmt::fmt)  # PyTorch brings one
  find_path(FMT_HEADERS fmt/format.h PATHS ${TONNAGE_TORCH_DIR}/include REQUIRED)
  add_library(tonnage_torch_fmt INTERFACE)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
  file(CREATE_LINK ${FMT_HEADERS}/fmt ${CMAKE_BINARY_DIR}/include/fmt SYMBOLIC)  # that alone
  target_include_directories(tonnage_torch_fmt SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/include)
  target_compile_definitions(tonnage_torch_fmt INTERFACE FMT_HEADER_ONLY)
  add_library(fmt::fmt ALIAS tonnage_torch_fmt)
endif()
find_path(JSON_HEADERS nlohmann/json.hpp PATHS ${CMAKE_SOURCE_DIR}/build/vendor/include REQUIRED)
include_directories(SYSTEM ${JSON_HEADERS})
