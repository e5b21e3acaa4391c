/*
 * layout.h - our declaration of a struct against the header that it stands for:
 * it compiles or it does not.
 */
#pragma once

#include <stddef.h>

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)

/* Ours is the beginning of theirs. */
#define BEGINS(ours, theirs) _Static_assert(sizeof(ours) <= sizeof(theirs), #theirs)

#define SAME_PLACE(ours, field, theirs, their_field)                           \
	_Static_assert(offsetof(ours, field) == offsetof(theirs, their_field), \
		       #theirs "." #their_field)

#define SAME_FIELD(ours, field, theirs, their_field)                                     \
	SAME_PLACE(ours, field, theirs, their_field);                                    \
	_Static_assert(sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field), \
		       #theirs "." #their_field)
