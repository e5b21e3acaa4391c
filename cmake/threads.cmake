# tests/threads/thread_X.c is a plain program (Criterion does not run under the
# thread sanitizer) that brings its own copy of what it tests, compiled with it.
if(SONDE_SANITIZE OR SONDE_FUZZ)
	return()
endif()
file(GLOB thread_sources CONFIGURE_DEPENDS tests/threads/thread_*.c)
file(GLOB tsan_sources CONFIGURE_DEPENDS src/base/*.c src/model/*.c src/store/store_*.c
	src/store/pack*.c)
list(APPEND tsan_sources src/store/chunk.c src/store/layout.c src/store/sql_table.c
	src/store/tables.c)
add_library(tsan STATIC EXCLUDE_FROM_ALL ${tsan_sources})
target_include_directories(tsan PUBLIC src)
target_compile_options(tsan PUBLIC -fsanitize=thread -g)
target_link_options(tsan PUBLIC -fsanitize=thread)
target_link_libraries(tsan PUBLIC ${POPT_LIB} ${ZSTD_LIB} ${ZLIB_LIB} ${SQLITE_LIB}
	Threads::Threads m)
foreach(source ${thread_sources})
	get_filename_component(name ${source} NAME_WE)
	add_executable(${name} EXCLUDE_FROM_ALL ${source})
	target_link_libraries(${name} PRIVATE tsan)
	add_dependencies(tests ${name})
	add_test(NAME ${name} COMMAND ${name})
endforeach()
