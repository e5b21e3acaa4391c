# po/LANG.po -> locale/LANG/LC_MESSAGES/sonde.mo beside the program.
find_program(MSGFMT msgfmt)
if(MSGFMT)
	file(GLOB po_files CONFIGURE_DEPENDS po/*.po)
	foreach(po ${po_files})
		get_filename_component(lang ${po} NAME_WE)
		set(mo ${CMAKE_BINARY_DIR}/locale/${lang}/LC_MESSAGES/sonde.mo)
		add_custom_command(OUTPUT ${mo}
			COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/locale/${lang}/LC_MESSAGES
			COMMAND ${MSGFMT} --check-format -o ${mo} ${po}
			DEPENDS ${po} VERBATIM)
		list(APPEND mo_files ${mo})
		install(FILES ${mo} DESTINATION share/locale/${lang}/LC_MESSAGES)
	endforeach()
	add_custom_target(catalogs ALL DEPENDS ${mo_files})
endif()
