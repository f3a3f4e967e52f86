# SPDX-License-Identifier: MIT
# The optional FlatBuffers. The target weft_schemas has the include paths of the generated headers of
# weft/serve/schemas; WEFT_HAVE_SCHEMAS is set if FlatBuffers is there. The library itself includes no generated header.
find_program(WEFT_FLATC flatc)
find_path(WEFT_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h)
add_library(weft_schemas INTERFACE)
set(WEFT_HAVE_SCHEMAS OFF)
if(WEFT_FLATC AND WEFT_FLATBUFFERS_INCLUDE)
  set(WEFT_HAVE_SCHEMAS ON)
  set(weft_generated ${PROJECT_BINARY_DIR}/generated)
  file(GLOB schemas CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/weft/serve/schemas/*.fbs)
  set(schema_headers)
  foreach(schema IN LISTS schemas)
    get_filename_component(name ${schema} NAME_WE)
    set(header ${weft_generated}/weft/serve/schemas/${name}_generated.h)
    add_custom_command(OUTPUT ${header} DEPENDS ${schema} VERBATIM
      COMMAND ${WEFT_FLATC} --cpp -o ${weft_generated}/weft/serve/schemas ${schema})
    list(APPEND schema_headers ${header})
  endforeach()
  add_custom_target(weft_schema_headers DEPENDS ${schema_headers})
  add_dependencies(weft_schemas weft_schema_headers)
  target_include_directories(weft_schemas SYSTEM INTERFACE ${weft_generated} ${WEFT_FLATBUFFERS_INCLUDE})
  target_compile_definitions(weft_schemas INTERFACE WEFT_HAVE_SCHEMAS)
endif()
