# doc/man/NAME.md becomes share/man/man1/NAME.1.
string(TIMESTAMP today "%Y-%m-%d" UTC) # SOURCE_DATE_EPOCH is honoured
file(GLOB pages CONFIGURE_DEPENDS doc/man/*.md)
foreach(page ${pages})
	get_filename_component(name ${page} NAME_WE)
	set(manual ${CMAKE_BINARY_DIR}/man/${name}.1)
	add_custom_command(OUTPUT ${manual}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
		COMMAND ${CMAKE_SOURCE_DIR}/tools/md2man ${today} ${page} > ${manual}
		DEPENDS ${page} tools/md2man VERBATIM)
	list(APPEND manuals ${manual})
endforeach()
add_custom_target(man ALL DEPENDS ${manuals})
install(FILES ${manuals} DESTINATION share/man/man1)
