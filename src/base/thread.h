/*
 * thread.h - a thread that works behind the program's back.
 *
 * It takes no signals: those go to the threads that expect them.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* False: there is no thread to be had. */
bool thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);

/* This process may use more than one CPU at a time. */
bool thread_has_cpus(void);
