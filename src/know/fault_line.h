/*
 * fault_line.h - messages of the kernel log that tell of a GPU in trouble.
 *
 * Format strings: kernel_rc.c, kern_gpu_error_cont_ga100.c, osinit.c, gpu.c,
 * common_nvswitch.h of NVIDIA/open-gpu-kernel-modules 595.45.04, and older
 * forms as logs show them; of the OOM killer mm/oom_kill.c of Linux. Forms and
 * fields: doc/formats/kernel_log.md.
 *
 * Some things are told in several lines, so a parser has a memory; all-zero is
 * its initial state.
 */
#pragma once

#include "model/fault.h"

struct fault_parser {
	char lost_pci[24];     /* "The NVIDIA GPU ..." was seen: "fallen off the bus" may follow */
	int lost_lines;        /* lines for which that holds */
	struct fault mismatch; /* being put together; kind NONE: none is */
	int mismatch_lines;
	char cgroup[96]; /* of the oom-kill line that comes before its victim's */
	int cgroup_lines;
	char identity_pci[24]; /* the card whose serial number may follow */
};

enum fault_line {
	FAULT_LINE_NONE,   /* nothing of ours */
	FAULT_LINE_FAULT,  /* *ret_fault is one, but for its time */
	FAULT_LINE_PART,   /* belongs to a fault told in several lines */
	FAULT_LINE_BROKEN, /* speaks of an Xid or SXid and cannot be read */
};

enum fault_line fault_line_parse(struct fault_parser *parser, struct str message,
				 struct fault *ret_fault);

/* After the last line: a fault whose end never came. */
enum fault_line fault_line_end(struct fault_parser *parser, struct fault *ret_fault);

/* NVLink 5, recovery actions, exceptions, page faults, memory repair: what the
 * text of an Xid says in numbers. Private to know/. */
void fault_decode(struct fault *fault);
