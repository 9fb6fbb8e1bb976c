# SPDX-License-Identifier: Apache-2.0
find_path(BLOSC_INCLUDE_DIR blosc.h)
find_library(BLOSC_LIBRARY blosc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(BLOSC REQUIRED_VARS BLOSC_LIBRARY BLOSC_INCLUDE_DIR)
if(BLOSC_FOUND AND NOT TARGET BLOSC::BLOSC)
  add_library(BLOSC::BLOSC UNKNOWN IMPORTED)
  set_target_properties(BLOSC::BLOSC PROPERTIES IMPORTED_LOCATION "${BLOSC_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${BLOSC_INCLUDE_DIR}")
endif()
