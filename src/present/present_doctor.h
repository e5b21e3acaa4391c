/*
 * present_doctor.h - a checkup as text and as JSON.
 */
#pragma once

#include "present/present.h"
#include "rules/check.h"

void present_doctor(const struct scene *scene, const struct checkup *checkup,
		    const struct present_style *style, struct buf *out);
/* schema "sonde.doctor/1": doc/formats/doctor.schema.json. */
void present_doctor_json(const struct scene *scene, const struct checkup *checkup, struct buf *out);
