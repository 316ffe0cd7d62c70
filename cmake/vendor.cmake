# Third-party libraries, one interface target per VENDOR word of src/CMakeLists.txt.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SIMDJSON IMPORTED_TARGET simdjson)
add_library(tonnage_vendor_simdjson INTERFACE)
target_link_libraries(tonnage_vendor_simdjson INTERFACE simdjson)

pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
add_library(tonnage_vendor_unicode INTERFACE)
target_link_libraries(tonnage_vendor_unicode INTERFACE PkgConfig::ICU)

pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
add_library(tonnage_vendor_sqlite3.h INTERFACE)
target_link_libraries(tonnage_vendor_sqlite3.h INTERFACE PkgConfig::SQLITE)

add_library(tonnage_vendor_boost INTERFACE)
target_compile_definitions(tonnage_vendor_boost INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
target_link_libraries(tonnage_vendor_boost INTERFACE Threads::Threads)
