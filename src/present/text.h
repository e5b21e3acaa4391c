/*
 * text.h - the sections of the text report, one function each.
 *
 * Private to present/. A section without facts prints nothing.
 */
#pragma once

#include "present/page.h"

/* "GPU 0", told apart by rank or file where several are called the same. */
const char *text_device_short(struct page *page, const struct facts *facts, uint32_t id);
/* A string of the session, fit to show. */
const char *text_string(struct page *page, const struct facts *facts, uint32_t id);
/* What the recording says of itself, in the reader's language. */
const char *text_note(struct page *page, const char *note);

void text_header(struct page *page, const struct facts *facts);
void text_timeline(struct page *page, const struct facts *facts);
void text_system(struct page *page, const struct facts *facts);
void text_ledger(struct page *page, const struct ledger *ledger);
void text_twins(struct page *page, const struct facts *facts);
void text_faults(struct page *page, const struct facts *facts);
void text_processes(struct page *page, const struct facts *facts);
/* A process's use over time as a row of bars; NULL unknown. */
const char *text_slots(struct page *page, const struct process_fact *process);

void text_findings(struct page *page, const struct facts *facts, const struct findings *findings);
void text_held_back(struct page *page, const struct facts *facts, const struct findings *findings);
void text_abstained(struct page *page, const struct findings *findings);

void text_kernels(struct page *page, const struct facts *facts);
void text_counters(struct page *page, const struct facts *facts);
void text_tables(struct page *page, const struct facts *facts);
void text_loss(struct page *page, const struct facts *facts);
