# SPDX-License-Identifier: MIT
# The target `package` makes the Debian packages of docs/packages.md in a build with WEFT_DEB, which is the preset `deb`:
# `./dev package deb`. Each component of the installation is a package.
if(NOT WEFT_DEB)
  return()
endif()
find_program(WEFT_SHLIBDEPS dpkg-shlibdeps)
if(NOT WEFT_SHLIBDEPS)
  message(FATAL_ERROR "WEFT_DEB is on, and there is no dpkg-shlibdeps (Debian: dpkg-dev), which finds what packages depend on.")
endif()
# Like Debian's own tools. Without an address the packages are of this machine: their maintainer is its user.
set(weft_contact "The Weft authors <weft@localhost>")
if(DEFINED ENV{DEBEMAIL})
  set(weft_contact "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
  if("$ENV{DEBFULLNAME}" STREQUAL "")
    set(weft_contact "The Weft authors <$ENV{DEBEMAIL}>")
  endif()
endif()
set(WEFT_PACKAGE_CONTACT "${weft_contact}" CACHE STRING "The maintainer of the packages: NAME <ADDRESS>; else DEBFULLNAME <DEBEMAIL>")
if(NOT WEFT_PACKAGE_CONTACT MATCHES "^[^<>@]+ <[^<>@ ]+@[^<>@ ]+>$")
  message(FATAL_ERROR "WEFT_PACKAGE_CONTACT is NAME <ADDRESS>, and not '${WEFT_PACKAGE_CONTACT}'.")
endif()
if(WEFT_PACKAGE_CONTACT MATCHES "@localhost>$")
  message(STATUS "The packages' maintainer is ${WEFT_PACKAGE_CONTACT}: set WEFT_PACKAGE_CONTACT or DEBEMAIL before you publish them.")
endif()
set(WEFT_PACKAGE_REVISION 1 CACHE STRING "The number of a packaging of one version")

set(weft_deb_version ${PROJECT_VERSION}-${WEFT_PACKAGE_REVISION})
set(weft_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${WEFT_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${WEFT_PACKAGE_REVISION})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL)

# weft_package(COMPONENT NAME SECTION SUMMARY TEXT): the component is this package.
function(weft_package component name section summary text)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  install(FILES LICENSE DESTINATION share/doc/${name} RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# weft_library_package(COMPONENT LIBRARY NUMBER DEPENDS TEXT): the component is the package of LIBRARY.so.NUMBER. Its name has
# the number, as section 8.1 of Debian's policy asks: packages of two numbers stand beside each other. dpkg-shlibdeps finds
# the package of a program's library in the file `shlibs`.
file(CONFIGURE OUTPUT control/triggers NEWLINE_STYLE UNIX CONTENT "activate-noawait ldconfig\n")
function(weft_library_package component library number depends text)
  string(REPLACE _ - name ${library}${number})
  weft_package(${component} ${name} libs "Messages between threads, processes and machines: ${library}" "${text}")
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  file(CONFIGURE OUTPUT control/${component}/shlibs NEWLINE_STYLE UNIX
    CONTENT "${library} ${number} ${name} (>= ${weft_soversion}.0)\n")
  string(TOUPPER ${component} upper)
  foreach(field IN ITEMS NAME SECTION SHLIBDEPS)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${field} ${CPACK_DEBIAN_${upper}_PACKAGE_${field}} PARENT_SCOPE)
  endforeach()
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${CPACK_DEBIAN_${upper}_DESCRIPTION}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/control/${component}/shlibs
    ${PROJECT_BINARY_DIR}/control/triggers PARENT_SCOPE)
  set(weft_dev_depends ${weft_dev_depends} "${name} (= ${weft_deb_version})" PARENT_SCOPE)
endfunction()

weft_library_package(library libweft ${weft_soversion} ""
  "libweft.so: sockets that speak ZeroMQ's protocol, a server, and their foundations, for C++.")
# dpkg-shlibdeps finds libweft.so in the build, and no package of it.
weft_library_package(topics_library libweft_topics ${weft_soversion} "libweft${weft_soversion} (= ${weft_deb_version})"
  "libweft_topics.so: topics, for C++.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
weft_library_package(topics_c_library libweft_topics_c 1 "" "libweft_topics_c.so: topics, for C. It has the other libraries inside.")

# The static libraries, and pkg-config, need the development packages of the libraries that this build has.
list(JOIN weft_dev_depends ", " weft_dev_depends)
foreach(feature_package IN ITEMS curve:libsodium-dev tls:libssl-dev deflate:zlib1g-dev kept:libsqlite3-dev)
  string(REPLACE ":" ";" feature_package ${feature_package})
  list(GET feature_package 0 feature)
  list(GET feature_package 1 package)
  if(weft_feature_${feature})
    string(APPEND weft_dev_depends ", ${package}")
  endif()
endforeach()
weft_package(development libweft-dev libdevel "Messages between threads, processes and machines: headers"
  "Headers, static libraries, the CMake package weft, and weft, weft-topics and weft-topics-c of pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${weft_dev_depends}")

if(TARGET weft_cli)
  weft_package(program weft net "Messages between threads, processes and machines: the command line"
    "The command weft, with manual pages, completions for bash, zsh and fish, and a unit of its hub for systemd.")
  install(FILES examples/weft-hub.service DESTINATION lib/systemd/user COMPONENT program EXCLUDE_FROM_ALL)
endif()

weft_package(compat libzmq5-weft libs "Weft in the place of libzmq"
  "libzmq.so.5 with the C interface of libzmq 4.3.5, its headers, pkg-config libzmq and the CMake package ZeroMQ.
All of them stand in folders of their own, beside those of the packages libzmq5 and libzmq3-dev.")

include(CPack)
