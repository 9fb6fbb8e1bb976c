include("${CMAKE_CURRENT_LIST_DIR}/headraceTargets.cmake")
