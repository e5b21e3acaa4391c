#include "present/prometheus_line.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "present/utf8.h"

/* Units that a name may end in. */
static const char *const units[] = {
	"bytes_per_second", "watts", "joules", "celsius", "ratio", "hertz", "bytes", "seconds"
};

static const char *unit_of(const char *name)
{
	struct str text = str_of(name);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i]);

		if (text.len > len && text.at[text.len - len - 1] == '_' &&
		    str_ends(text, units[i]))
			return units[i];
	}
	return NULL;
}

static const char *suffix(enum prom_type type)
{
	switch (type) {
	case PROM_COUNTER:
		return "_total";
	case PROM_INFO:
		return "_info";
	case PROM_GAUGE:
		break;
	}
	return "";
}

static const char *type_word(const struct prom *prom)
{
	switch (prom->type) {
	case PROM_COUNTER:
		return "counter";
	case PROM_INFO:
		return prom->openmetrics ? "info" : "gauge";
	case PROM_GAUGE:
		break;
	}
	return "gauge";
}

void prom_family(struct prom *prom, const char *name, enum prom_type type, const char *help)
{
	if (prom->name && !strcmp(prom->name, name))
		return;
	prom->name = name;
	prom->type = type;
	prom->help = help;
	prom->begun = false;
}

/* OpenMetrics names the family, text 0.0.4 the samples. Help is ours, and has
 * nothing to be escaped. */
static void begin(struct prom *prom)
{
	const char *end = prom->openmetrics ? "" : suffix(prom->type);
	const char *unit = unit_of(prom->name);

	prom->begun = true;
	buf_printf(prom->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prom->name, end, prom->help,
		   prom->name, end, type_word(prom));
	if (prom->openmetrics && unit)
		buf_printf(prom->out, "# UNIT %s %s\n", prom->name, unit);
}

void prom_labels_done(struct prom_labels *labels)
{
	buf_done(&labels->text);
}

static void add_escaped(struct buf *out, const char *text)
{
	while (*text) {
		uint32_t code;
		size_t len = utf8_next(text, &code);

		if (!len) {
			buf_text(out, "\xef\xbf\xbd");
			len = 1;
		} else if (*text == '\n') {
			buf_text(out, "\\n");
		} else {
			if (*text == '\\' || *text == '"')
				buf_char(out, '\\');
			buf_add(out, text, len);
		}
		text += len;
	}
}

static void add_label(struct buf *out, bool more, const char *name, const char *value)
{
	buf_printf(out, "%s%s=\"", more ? "," : "", name);
	add_escaped(out, value);
	buf_char(out, '"');
}

void prom_labels_text(struct prom_labels *labels, const char *name, const char *value)
{
	if (value && *value)
		add_label(&labels->text, labels->text.len > 0, name, value);
}

void prom_labels_i64(struct prom_labels *labels, const char *name, int64_t value)
{
	buf_printf(&labels->text, "%s%s=\"%lld\"", labels->text.len ? "," : "", name,
		   (long long)value);
}

/* Whole numbers in full, as bytes are read: not 6.4e+10. */
static void add_number(struct buf *out, double number)
{
	if (fabs(number) < 0x1p53 && number == trunc(number))
		buf_printf(out, "%lld", (long long)number);
	else
		buf_f64(out, number);
}

void prom_sample_with(struct prom *prom, const struct prom_labels *labels, const char *name,
		      const char *value, double number)
{
	bool any = labels && labels->text.len;

	if (!isfinite(number))
		return;
	if (!prom->begun)
		begin(prom);
	buf_printf(prom->out, "%s%s", prom->name, suffix(prom->type));
	if (any || name) {
		buf_char(prom->out, '{');
		if (any)
			buf_add(prom->out, labels->text.at, labels->text.len);
		if (name)
			add_label(prom->out, any, name, value);
		buf_char(prom->out, '}');
	}
	buf_char(prom->out, ' ');
	add_number(prom->out, number);
	buf_char(prom->out, '\n');
}

void prom_sample(struct prom *prom, const struct prom_labels *labels, double value)
{
	prom_sample_with(prom, labels, NULL, NULL, value);
}

void prom_end(struct prom *prom)
{
	if (prom->openmetrics)
		buf_text(prom->out, "# EOF\n");
}
