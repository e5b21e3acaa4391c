#include "store/pack_ahead.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"

/*
 * Jobs `head` to `packed` are done, from there to `tail` they wait; all three
 * only grow, and a job's place is its number modulo JOBS. The lock guards
 * `packed`, `tail` and `stop`; a job itself belongs to the thread from the
 * moment `tail` passes it until `packed` does, and to the giver otherwise.
 */
enum { JOBS = 4 };
/* Three chunks of device work. */
static const size_t BYTES_MAX = 24u << 20;

struct pack_ahead {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t packed, tail;
	bool stop;
	struct packer *packer; /* the thread's alone */
	struct pack_job jobs[JOBS];
	/* the giver's alone */
	uint64_t head;
	size_t bytes[JOBS], in_flight;
	struct intern *texts[JOBS]; /* that go with the job */
};

static bool wait_job(struct pack_ahead *ahead)
{
	bool go;

	(void)pthread_mutex_lock(&ahead->lock);
	while (!ahead->stop && ahead->packed == ahead->tail)
		(void)pthread_cond_wait(&ahead->changed, &ahead->lock);
	go = !ahead->stop;
	(void)pthread_mutex_unlock(&ahead->lock);
	return go;
}

static void *pack_all(void *arg)
{
	struct pack_ahead *ahead = arg;

	while (wait_job(ahead)) {
		/* Only this thread moves `packed`: it may look without the lock. */
		struct pack_job *job = &ahead->jobs[ahead->packed % JOBS];

		if (job->count)
			pack(ahead->packer, job);
		(void)pthread_mutex_lock(&ahead->lock);
		ahead->packed++;
		(void)pthread_cond_signal(&ahead->changed);
		(void)pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

static void release(struct pack_ahead *ahead)
{
	(void)pthread_cond_destroy(&ahead->changed);
	(void)pthread_mutex_destroy(&ahead->lock);
	for (int i = 0; i < JOBS; i++) {
		free(ahead->jobs[i].rows);
		pack_job_done(&ahead->jobs[i]);
		intern_free(ahead->texts[i]);
	}
	packer_free(ahead->packer);
	free(ahead);
}

struct pack_ahead *pack_ahead_start(size_t rows_max)
{
	struct pack_ahead *ahead;

	if (!thread_has_cpus())
		return NULL;
	ahead = mem_zero(sizeof(*ahead));
	ahead->packer = packer_new(rows_max);
	(void)pthread_mutex_init(&ahead->lock, NULL);
	(void)pthread_cond_init(&ahead->changed, NULL);
	if (thread_start(&ahead->thread, pack_all, ahead))
		return ahead;
	release(ahead);
	return NULL;
}

void pack_ahead_stop(struct pack_ahead *ahead)
{
	if (!ahead)
		return;
	(void)pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	(void)pthread_cond_signal(&ahead->changed);
	(void)pthread_mutex_unlock(&ahead->lock);
	(void)pthread_join(ahead->thread, NULL);
	release(ahead);
}

/* Only the giver moves `tail`: it may look without the lock. */
struct pack_job *pack_ahead_room(struct pack_ahead *ahead, size_t bytes)
{
	if (ahead->tail - ahead->head == JOBS ||
	    (ahead->tail != ahead->head && ahead->in_flight + bytes > BYTES_MAX))
		return NULL;
	return &ahead->jobs[ahead->tail % JOBS];
}

void pack_ahead_give(struct pack_ahead *ahead, size_t bytes)
{
	ahead->bytes[ahead->tail % JOBS] = bytes;
	ahead->in_flight += bytes;
	(void)pthread_mutex_lock(&ahead->lock);
	ahead->tail++;
	(void)pthread_cond_signal(&ahead->changed);
	(void)pthread_mutex_unlock(&ahead->lock);
}

void pack_ahead_give_texts(struct pack_ahead *ahead, struct intern *texts)
{
	ahead->jobs[ahead->tail % JOBS].count = 0;
	ahead->texts[ahead->tail % JOBS] = texts;
	pack_ahead_give(ahead, 0);
}

const struct pack_job *pack_ahead_take(struct pack_ahead *ahead, bool wait)
{
	size_t place = ahead->head % JOBS;
	struct pack_job *job = NULL;

	if (ahead->head == ahead->tail)
		return NULL;
	(void)pthread_mutex_lock(&ahead->lock);
	while (wait && ahead->packed == ahead->head)
		(void)pthread_cond_wait(&ahead->changed, &ahead->lock);
	if (ahead->packed != ahead->head)
		job = &ahead->jobs[place];
	(void)pthread_mutex_unlock(&ahead->lock);
	if (!job)
		return NULL;
	free(job->rows);
	job->rows = NULL;
	intern_free(ahead->texts[place]);
	ahead->texts[place] = NULL;
	ahead->in_flight -= ahead->bytes[place];
	ahead->head++;
	return job;
}
