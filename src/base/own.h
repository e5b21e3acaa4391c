/*
 * own.h - a local variable that releases what it points to.
 *
 * The only file in src/ that spells the compiler attribute. A module says
 * DEFINE_OWNED(type, release) once; a function then writes
 *
 *	OWN(type_freep) struct type *thing = type_new();
 *
 * and moves the thing out with STEAL when it succeeds.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define OWN(release) __attribute__((cleanup(release)))

/* For `void release(struct type *)`, which accepts NULL. */
#define DEFINE_OWNED(type, release)                     \
	static inline void release##p(struct type **pp) \
	{                                               \
		release(*pp);                           \
	}                                               \
	struct type

#define STEAL(p)                             \
	__extension__({                      \
		__typeof__(p) stolen_ = (p); \
		(p) = NULL;                  \
		stolen_;                     \
	})

static inline void own_freep(void *pp)
{
	free(*(void **)pp);
}

static inline void own_fclosep(FILE **pp)
{
	if (*pp)
		(void)fclose(*pp);
}

/* Closes a descriptor held in an int; below 0 is a no-op. */
void own_closep(int *fd);

/* STEAL for it. */
static inline int own_fd_steal(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}
