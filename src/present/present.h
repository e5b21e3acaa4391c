/*
 * present.h - facts and findings as text and JSON.
 */
#pragma once

#include <stdbool.h>

#include "analyze/facts.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "know/know.h"
#include "model/fault.h"
#include "rules/rule.h"

struct present_style {
	int columns; /* width; 80 when unknown */
	bool colour;
	bool utf8;  /* bars and signs beyond ASCII */
	int top;    /* rows in tables; 0: the default */
	int layers; /* bits 1 << enum layer; 0: all */
};

/* The report for people. */
void present_text(const struct facts *facts, const struct findings *findings,
		  const struct present_style *style, struct buf *out);
/* schema "sonde.report/1": doc/formats/report.schema.json. */
void present_json(const struct facts *facts, const struct findings *findings, struct buf *out);

/* What `sonde explain` prints, and its JSON (schema "sonde.explain/1"). */
void present_explain(const struct know_hits *hits, const struct present_style *style,
		     struct buf *out);
/* `fault`: of a pasted line, goes first; NULL none. */
void present_explain_json(const struct know_hits *hits, const struct fault *fault, struct buf *out);

/* The fault that a pasted text (one line or several) tells of, if any. */
bool present_explain_find(struct str text, struct fault *ret_fault);
void present_explain_fault(const struct fault *fault, const struct present_style *style,
			   struct buf *out);
void present_explain_fault_json(const struct fault *fault, struct json *json);

/* Cells that a text takes on a terminal (CJK two), -1 for no UTF-8. */
int present_width(const char *text);
