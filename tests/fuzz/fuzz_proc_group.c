/* Texts about a process: cgroup paths, names of container logs, names. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "collect/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct str pod, namespace, container, id;
	struct proc_group group;
	char name[16];

	proc_group_parse(text, &group);
	assert(strlen(group.container_id) < sizeof(group.container_id));
	assert(strlen(group.slurm_job) < sizeof(group.slurm_job));
	if (proc_log_name(text, &pod, &namespace, &container, &id))
		assert(id.len == 64 && pod.len + namespace.len + container.len < size);
	proc_text(name, sizeof(name), text);
	assert(strlen(name) < sizeof(name));
	for (const char *c = name; *c; c++)
		assert((unsigned char)*c >= 0x20 && *c != 0x7f);
	return 0;
}
