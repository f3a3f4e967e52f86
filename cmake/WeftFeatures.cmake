# SPDX-License-Identifier: MIT
# The optional features of this build, and why the others are missing. weft_feature_<name>
# is ON or OFF; weft_reason_<name> names the missing package. WEFT_REQUIRE_TLS and _CURVE make the absence an error.
option(WEFT_REQUIRE_TLS "Refuse to configure without TLS" OFF)
option(WEFT_REQUIRE_CURVE "Refuse to configure without CURVE" OFF)

# weft_feature(NAME FOUND REASON)
macro(weft_feature name found reason)
  if(${found})
    set(weft_feature_${name} ON)
    set(weft_reason_${name} "")
  else()
    set(weft_feature_${name} OFF)
    set(weft_reason_${name} "${reason}")
  endif()
  string(TOUPPER ${name} weft_required)
  if(WEFT_REQUIRE_${weft_required} AND NOT weft_feature_${name})
    message(FATAL_ERROR "WEFT_REQUIRE_${weft_required} is on, and ${reason}.")
  endif()
endmacro()

weft_feature(curve "${sodium_FOUND}" "pkg-config finds no libsodium (Debian: libsodium-dev), which CURVE needs")
weft_feature(tls "${OPENSSL_FOUND}" "CMake finds no OpenSSL 3 (Debian: libssl-dev), which TLS needs")
weft_feature(kept "${SQLite3_FOUND}" "CMake finds no SQLite 3 (Debian: libsqlite3-dev), which topics that are kept need")
weft_feature(deflate "${ZLIB_FOUND}" "CMake finds no zlib (Debian: zlib1g-dev), which compressed WebSocket messages need")

# Called at the end of the configuration.
function(weft_print_features)
  message(STATUS "Weft ${PROJECT_VERSION}:")
  foreach(name curve tls kept deflate)
    if(weft_feature_${name})
      message(STATUS "  ${name}: yes")
    else()
      message(STATUS "  ${name}: no, ${weft_reason_${name}}")
    endif()
  endforeach()
  message(STATUS "  install: ${WEFT_INSTALL}")
endfunction()
