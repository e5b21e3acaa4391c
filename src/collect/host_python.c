/*
 * PyTorch as its package's files tell it: importing it takes seconds and may
 * touch the GPU.
 */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "collect/child_text.h"
#include "collect/host_part.h"

enum { PYTHON_LIMIT_MS = 5000, FOLDERS_MAX = 16 };

/* Lines "key TAB value". find_spec of a top-level name does not import it. */
static const char SCRIPT[] =
	"import sys\n"
	"sys.path.pop(0)\n" /* the current folder: anybody's os.py may lie there */
	"import os, re\n"
	"from importlib import metadata, util\n"
	"def say(key, value): print(key, value, sep='\\t')\n"
	"say('python', sys.version.split()[0])\n"
	"try: say('torch', metadata.version('torch'))\n"
	"except metadata.PackageNotFoundError: pass\n"
	"spec = util.find_spec('torch')\n"
	"if spec and spec.origin:\n"
	"    try: text = open(os.path.join(os.path.dirname(spec.origin), 'version.py')).read()\n"
	"    except OSError: text = ''\n"
	"    found = re.search(r\"^cuda\\b[^=\\n]*= *['\\\"]([0-9.]+)\", text, re.M)\n"
	"    if found: say('cuda', found.group(1))\n"
	"spec = util.find_spec('nvidia')\n"
	"for folder in (spec.submodule_search_locations or []) if spec else []:\n"
	"    say('folder', folder)\n";

static void take(const struct host_look *look, struct host_python *python, struct str key,
		 struct str value)
{
	const char *text = arena_text(look->tree.arena, value.at ? value.at : "", value.len);

	if (str_is(key, "python"))
		python->version = text;
	else if (str_is(key, "torch"))
		python->torch = text;
	else if (str_is(key, "cuda"))
		python->torch_cuda = text;
	else if (str_is(key, "folder") && python->folders.count < FOLDERS_MAX)
		*VEC_ADD(&python->folders) = text;
}

/* An invented tree has an interpreter only if one is named: this machine's
 * would tell of this machine. */
void host_read_python(const struct host_look *look, struct host *host)
{
	const char *interpreter = look->opts->python;
	struct buf out = { 0 };
	struct str rest;

	if (!interpreter && look->here)
		interpreter = "python3";
	if (!interpreter || !*interpreter)
		return;
	host->python.interpreter = interpreter;
	if (child_program((const char *const[]){ interpreter, "-c", SCRIPT, NULL }, PYTHON_LIMIT_MS,
			  &out, NULL) < 0) {
		host->python.asked = TRUTH_NO;
		buf_done(&out);
		return;
	}
	host->python.asked = TRUTH_YES;
	rest = str_of(out.at);
	while (rest.at && rest.len) {
		struct str line = str_cut(&rest, '\n'), key = str_cut(&line, '\t');

		take(look, &host->python, key, line);
	}
	buf_done(&out);
}
