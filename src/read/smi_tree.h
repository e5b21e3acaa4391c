/*
 * smi_tree.h - what nvidia-smi -q and -q -x say: names within names, for each
 * GPU of one moment.
 *
 * Every leaf becomes environment under its path, verbatim; leaves that are
 * metrics make a sample of the board too, and processes a sample each. A name
 * that comes again under one parent gets its number: "name[2]" is the second.
 *
 * A moment is kept until it is complete, because the index of a GPU follows
 * only from how many there are.
 */
#pragma once

#include "read/smi_log.h"

enum { SMI_TREE_DEPTH_MAX = 24 };

struct smi_leaf {
	uint32_t path;  /* string, with numbers of what comes again */
	uint32_t plain; /* string, without them */
	uint32_t value; /* string */
};

struct smi_node {
	uint32_t path, plain;
	int indent; /* of text */
	bool has_children;
};

struct smi_tree_gpu {
	uint32_t bus; /* string: as the heading says */
	VEC(struct smi_leaf) leaves;
};

struct smi_tree {
	struct smi_log *log;
	enum smi_form form;
	struct smi_node node[SMI_TREE_DEPTH_MAX];
	int depth;
	struct map again; /* path and name to how often it came */
	VEC(struct smi_leaf) machine;
	VEC(struct smi_tree_gpu) gpus;
	bool in_gpu;
	size_t leaf_count;
	int64_t too_many; /* leaves that were not kept */
	bool has_stamp;
	int64_t stamp_ns;
	int64_t attached; /* GPUs that there are; -1 unknown */
};

void smi_tree_begin(struct smi_tree *tree, struct smi_log *log, enum smi_form form);
void smi_tree_done(struct smi_tree *tree);

/* What follows is about the GPU with this bus id. */
void smi_tree_gpu(struct smi_tree *tree, struct str bus);
/* It is about the machine again. */
void smi_tree_leave_gpu(struct smi_tree *tree);

/* One level down; false: too deep, and nothing was pushed. */
bool smi_tree_push(struct smi_tree *tree, struct str name);
void smi_tree_pop(struct smi_tree *tree);
/* The node pushed last has this value. */
void smi_tree_leaf(struct smi_tree *tree, struct str value);

/* Hand the moment over and empty the tree. */
int smi_tree_flush(struct smi_tree *tree, struct err *err);
