/*
 * What cgroup paths and names of container logs tell, as runtimes write them:
 *
 *	kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope
 *	kubepods/burstable/pod<uid>/<id>
 *	system.slice/containerd.service/kubepods-burstable-pod<uid>.slice:cri-containerd:<id>
 *	docker/<id>   system.slice/docker-<id>.scope   machine.slice/libpod-<id>.scope/container
 *	slurm/uid_1000/job_17/step_0   system.slice/slurmstepd.scope/job_17/step_0
 *
 * An <id> is 64 hexadecimal digits. systemd writes a pod's dashes as '_'.
 */
#include "collect/proc.h"

#include <string.h>

enum { ID_DIGITS = 64, POD_UID_MIN = 32, POD_UID_MAX = 36 };

void proc_text(char *to, size_t room, struct str text)
{
	size_t used = 0;

	while (text.len) {
		size_t len = str_character(text);
		unsigned char first = (unsigned char)text.at[0];
		/* 0xc2 0x80 to 0x9f are control characters too. */
		bool fit = len && first >= 0x20 && first != 0x7f &&
			   !(first == 0xc2 && (unsigned char)text.at[1] < 0xa0);

		if (used + (fit ? len : 1) >= room)
			break;
		if (fit)
			memcpy(to + used, text.at, len);
		else
			to[used] = '?';
		used += fit ? len : 1;
		len = len ? len : 1;
		text = (struct str){ text.at + len, text.len - len };
	}
	to[used] = 0;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool all_hex(struct str str)
{
	for (size_t i = 0; i < str.len; i++) {
		if (!is_hex(str.at[i]))
			return false;
	}
	return str.len > 0;
}

/* `piece` ends in an id; what stands before it goes to *ret_prefix. */
static bool ends_in_id(struct str piece, struct str *ret_prefix, struct str *ret_id)
{
	if (piece.len < ID_DIGITS)
		return false;
	*ret_prefix = (struct str){ piece.at, piece.len - ID_DIGITS };
	*ret_id = (struct str){ piece.at + piece.len - ID_DIGITS, ID_DIGITS };
	return all_hex(*ret_id) && (!ret_prefix->len || str_ends(*ret_prefix, "-"));
}

/* "...pod<uid>" at the start or after a dash. */
static bool pod_of(struct str piece, char *ret_uid, size_t room)
{
	for (size_t i = 0; i + 3 + POD_UID_MIN <= piece.len; i++) {
		struct str uid = { piece.at + i + 3, piece.len - i - 3 };
		bool good = !memcmp(piece.at + i, "pod", 3) && (!i || piece.at[i - 1] == '-') &&
			    uid.len <= POD_UID_MAX;

		for (size_t c = 0; good && c < uid.len; c++)
			good = is_hex(uid.at[c]) || uid.at[c] == '_' || uid.at[c] == '-';
		if (!good)
			continue;
		proc_text(ret_uid, room, uid);
		for (char *c = ret_uid; *c; c++)
			*c = *c == '_' ? '-' : *c;
		return true;
	}
	return false;
}

static const char *runtime_of(struct str word)
{
	static const struct {
		const char *start, *runtime;
	} known[] = {
		{ "cri-containerd", "containerd" },
		{ "nerdctl", "containerd" },
		{ "docker", "docker" },
		{ "crio", "crio" },
		{ "libpod", "podman" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (str_starts(word, known[i].start))
			return known[i].runtime;
	}
	return NULL;
}

static struct str without(struct str piece, const char *ending)
{
	if (str_ends(piece, ending))
		piece.len -= strlen(ending);
	return piece;
}

/* "job_17" */
static bool job_of(struct str piece, struct str *ret_job)
{
	int64_t job;

	if (!str_starts(piece, "job_"))
		return false;
	*ret_job = (struct str){ piece.at + 4, piece.len - 4 };
	return str_to_i64(*ret_job, &job) && job > 0;
}

static void parse_path(struct str path, struct proc_group *group)
{
	const char *outer = NULL; /* runtime that the folder above names */
	bool slurm = false;

	/* '/' between folders, ':' inside one in containerd's cgroupfs form. */
	while (path.len) {
		size_t len = 0;
		struct str piece, prefix, id, job;

		while (len < path.len && path.at[len] != '/' && path.at[len] != ':')
			len++;
		piece = (struct str){ path.at, len };
		path = len < path.len ? (struct str){ path.at + len + 1, path.len - len - 1 }
				      : (struct str){ 0 };
		piece = without(without(piece, ".scope"), ".slice");
		slurm = slurm || str_find(piece, "slurm");
		if (slurm && job_of(piece, &job)) {
			proc_text(group->slurm_job, sizeof(group->slurm_job), job);
		} else if (ends_in_id(piece, &prefix, &id)) {
			const char *runtime = prefix.len ? runtime_of(prefix) : outer;

			/* conmon watches a container from outside. */
			if (str_find(prefix, "conmon"))
				continue;
			proc_text(group->container_id, sizeof(group->container_id), id);
			proc_text(group->runtime, sizeof(group->runtime),
				  str_of(runtime ? runtime : ""));
		} else {
			(void)pod_of(piece, group->pod_uid, sizeof(group->pod_uid));
		}
		outer = runtime_of(piece);
	}
}

static void complete(char *to, const char *from, size_t room)
{
	if (!*to)
		memcpy(to, from, room);
}

void proc_group_parse(struct str text, struct proc_group *ret)
{
	memset(ret, 0, sizeof(*ret));
	while (text.len) {
		struct proc_group line = { 0 };
		struct str path = str_cut(&text, '\n');

		(void)str_cut(&path, ':');
		(void)str_cut(&path, ':');
		if (!path.len)
			continue;
		parse_path(path, &line);
		complete(ret->container_id, line.container_id, sizeof(line.container_id));
		complete(ret->runtime, line.runtime, sizeof(line.runtime));
		complete(ret->pod_uid, line.pod_uid, sizeof(line.pod_uid));
		complete(ret->slurm_job, line.slurm_job, sizeof(line.slurm_job));
	}
}

bool proc_log_name(struct str name, struct str *ret_pod, struct str *ret_namespace,
		   struct str *ret_container, struct str *ret_id)
{
	struct str prefix;

	if (!str_ends(name, ".log"))
		return false;
	name = without(name, ".log");
	if (!ends_in_id(name, &prefix, ret_id) || !prefix.len)
		return false;
	prefix.len--;
	/* Kubernetes names have no '_' in them. */
	*ret_pod = str_cut(&prefix, '_');
	*ret_namespace = str_cut(&prefix, '_');
	*ret_container = prefix;
	return ret_pod->len && ret_namespace->len && ret_container->len &&
	       !memchr(prefix.at, '_', prefix.len);
}
