# SPDX-License-Identifier: MIT
# The library weft::topics: topics, the store of those that are kept, and the client of NATS. Core Weft builds without it.
set(weft_topics_folders)
foreach(folder nats store topic)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS weft/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_(test|fuzz|bench)|/test_[a-z_]+)\\.cc$")
  if(sources)
    add_library(weft_${folder} OBJECT ${sources})
    target_include_directories(weft_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
    list(APPEND weft_topics_folders ${folder})
  endif()
endforeach()

if(SQLite3_FOUND AND TARGET weft_store)
  target_compile_definitions(weft_store PRIVATE WEFT_HAVE_SQLITE)
  target_include_directories(weft_store SYSTEM PRIVATE ${SQLite3_INCLUDE_DIRS})
endif()

if(sodium_FOUND AND TARGET weft_nats)
  target_compile_definitions(weft_nats PRIVATE WEFT_HAVE_SODIUM)
  target_include_directories(weft_nats SYSTEM PRIVATE ${sodium_INCLUDE_DIRS})
endif()

# Called when weft and weft_shared are there.
function(weft_add_topics_library)
  set(objects)
  foreach(folder IN LISTS weft_topics_folders)
    list(APPEND objects $<TARGET_OBJECTS:weft_${folder}>)
  endforeach()
  add_library(weft_topics STATIC ${objects})
  add_library(weft_topics_shared SHARED ${objects})
  set_target_properties(weft_topics PROPERTIES EXPORT_NAME topics_static OUTPUT_NAME weft_topics)
  set_target_properties(weft_topics_shared PROPERTIES EXPORT_NAME topics_shared OUTPUT_NAME weft_topics
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "$ORIGIN")  # libweft.so is installed beside it
  target_link_libraries(weft_topics PUBLIC weft)
  target_link_libraries(weft_topics_shared PUBLIC weft_shared)
  foreach(library weft_topics weft_topics_shared)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
    if(sodium_FOUND)
      target_link_libraries(${library} PRIVATE "$<BUILD_INTERFACE:${sodium_LINK_LIBRARIES}>")
    endif()
    if(SQLite3_FOUND)
      target_link_libraries(${library} PRIVATE
        "$<BUILD_INTERFACE:-Wl,--push-state,--as-needed,${SQLite3_LIBRARIES},--pop-state>"
        $<INSTALL_INTERFACE:weft::topics_dependencies>)
    endif()
  endforeach()
  add_library(weft::topics ALIAS weft_topics)
endfunction()
