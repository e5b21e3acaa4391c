# tests/serve/*.py are clients: they attack an exporter of invented cards, and
# let the real Prometheus scrape it (skipped where there is none).
add_executable(serve_made EXCLUDE_FROM_ALL tests/serve/serve_made.c)
target_include_directories(serve_made PRIVATE tests)
target_link_libraries(serve_made PRIVATE serve)
add_dependencies(tests serve_made)
if(PYTHON3)
	file(GLOB serve_tests CONFIGURE_DEPENDS tests/serve/check_*.py)
	foreach(script ${serve_tests})
		get_filename_component(name ${script} NAME_WE)
		string(REPLACE "check_" "serve_" name ${name})
		add_test(NAME ${name} COMMAND ${PYTHON3} ${script} $<TARGET_FILE:serve_made>
			$<TARGET_FILE:sonde> ${CMAKE_BINARY_DIR}/tests/fake/libnvidia-ml.so.1)
		set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
	endforeach()
endif()
