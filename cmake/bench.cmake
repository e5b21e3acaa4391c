# What ./bench runs; not part of the default build.
foreach(name trace_gen verify parse_count)
	if(EXISTS ${CMAKE_SOURCE_DIR}/tests/bench/${name}.c)
		add_executable(${name} EXCLUDE_FROM_ALL tests/bench/${name}.c)
		target_include_directories(${name} PRIVATE src tests)
		target_link_libraries(${name} PRIVATE present)
	endif()
endforeach()
