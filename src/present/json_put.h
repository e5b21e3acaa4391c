/*
 * json_put.h - members of a JSON object that are left out when unknown.
 *
 * Private to present/: FACT_UNKNOWN, NAN and the empty string of the session
 * are "not measured" and put nothing.
 */
#pragma once

#include <stdint.h>

#include "analyze/facts.h"
#include "base/json.h"
#include "rules/rule.h"

/* FACT_UNKNOWN (and so EVENT_UNKNOWN) puts nothing. */
void put_i64(struct json *json, const char *key, int64_t value);
/* For fields of the session whose unknown is `unknown`. */
void put_i64_unless(struct json *json, const char *key, int64_t value, int64_t unknown);
void put_f64(struct json *json, const char *key, double value);
/* NULL and "" put nothing. */
void put_text(struct json *json, const char *key, const char *value);
/* A string of the session; 0 puts nothing. */
void put_string(struct json *json, const char *key, const struct session *session, uint32_t id);
/* "key": [x, y, z], unless x is 0. */
void put_dim3(struct json *json, const char *key, const int32_t dim[3]);

void present_json_device(const struct facts *facts, const struct device_fact *device,
			 struct json *json);
void present_json_kernel(const struct facts *facts, const struct kernel_fact *kernel,
			 struct json *json);
void present_json_tables(const struct facts *facts, struct json *json);
void present_json_faults(const struct facts *facts, struct json *json);
void present_json_findings(const struct facts *facts, const struct findings *findings,
			   struct json *json);
