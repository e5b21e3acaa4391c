/*
 * vec.h - a growing array of one type.
 *
 *	VEC(struct lane) lanes = { 0 };
 *	*VEC_ADD(&lanes) = lane;           (a new, cleared element)
 *	for (size_t i = 0; i < lanes.count; i++)
 *		use(&lanes.at[i]);
 *	VEC_DONE(&lanes);
 *
 * Pointers to elements hold until the next VEC_ADD.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)             \
	struct {              \
		type *at;     \
		size_t count; \
		size_t room;  \
	}

#define VEC_ADD(vec)                                                                   \
	__extension__({                                                                \
		__typeof__(vec) vec_ = (vec);                                          \
		if (vec_->count == vec_->room)                                         \
			vec_->at = vec_grow(vec_->at, &vec_->room, sizeof(*vec_->at)); \
		memset(&vec_->at[vec_->count], 0, sizeof(*vec_->at));                  \
		&vec_->at[vec_->count++];                                              \
	})

/* Room for `n` elements in all, without changing count. */
#define VEC_ROOM(vec, n)                                                                       \
	do {                                                                                   \
		__typeof__(vec) vec_ = (vec);                                                  \
		if ((n) > vec_->room)                                                          \
			vec_->at = vec_reserve(vec_->at, &vec_->room, (n), sizeof(*vec_->at)); \
	} while (0)

#define VEC_DONE(vec)                           \
	do {                                    \
		__typeof__(vec) vec_ = (vec);   \
		free(vec_->at);                 \
		memset(vec_, 0, sizeof(*vec_)); \
	} while (0)

/* For the macros above. */
void *vec_grow(void *at, size_t *room, size_t size);
void *vec_reserve(void *at, size_t *room, size_t wanted, size_t size);
