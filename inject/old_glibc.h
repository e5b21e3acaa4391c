/*
 * old_glibc.h - asks for the oldest version of each function that glibc 2.32
 * and 2.34 gave a new one, so that the library loads into programs of older
 * systems: containers have their own glibc. It comes in front of every file of
 * inject/ (cmake/inject.cmake); tools/check-exports holds the ceiling.
 *
 * Those functions lived in libdl and libpthread then, which are named as
 * needed for that reason.
 */
#pragma once

#ifdef __x86_64__
#define OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)

OLD(dlopen, "2.2.5");
OLD(dlsym, "2.2.5");
OLD(dlvsym, "2.2.5");
OLD(dlclose, "2.2.5");
OLD(dlerror, "2.2.5");
OLD(dlinfo, "2.3.3");
OLD(pthread_create, "2.2.5");
OLD(pthread_getattr_np, "2.2.5");
OLD(pthread_attr_getstack, "2.2.5");
OLD(pthread_mutex_trylock, "2.2.5");
OLD(pthread_sigmask, "2.2.5");
OLD(pthread_mutex_trylock, "2.2.5");
OLD(pthread_attr_setstacksize, "2.2.5");
OLD(pthread_setname_np, "2.12");

#undef OLD
#endif
