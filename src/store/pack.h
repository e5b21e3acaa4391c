/*
 * pack.h - rows of events to the bytes of a chunk.
 *
 * Packing needs nothing but the job and the packer, so it can be done by a
 * thread (pack_ahead.h); the texts that details stand for are looked up
 * beforehand. Internal to store/.
 */
#pragma once

#include "base/buf.h"
#include "base/intern.h"
#include "base/own.h"
#include "base/vec.h"
#include "store/internal.h"

struct pack_job {
	/* What is to be packed. */
	int64_t id; /* of the chunk */
	enum store_kind kind;
	uint32_t lane;
	int64_t *rows; /* `count` of them, one behind the other */
	size_t count;
	/* Details: by row the place in `texts`, counted from 1; 0: none. Without
	 * texts that array means nothing. */
	uint32_t *text_of;
	VEC(struct str) texts;
	/* What became of it. */
	struct chunk_head head;
	struct buf blob;
};

struct packer;

/* For chunks of up to `rows_max` rows. */
struct packer *packer_new(size_t rows_max);
void packer_free(struct packer *packer);
DEFINE_OWNED(packer, packer_free);

void pack(struct packer *packer, struct pack_job *job);

/* Everything but job->rows, which is somebody else's. */
void pack_job_done(struct pack_job *job);
