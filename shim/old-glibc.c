/*
 * old-glibc.c: lets libsbeet.so do with symbols that glibc 2.28 (2018) has, so that a program in a
 * container of an older system starts with it.
 *
 * The linker puts each function here in the place of the one of its name (--wrap; meson.build reads
 * the names from this file). It is no part of the static library that tests link. The test `preload`
 * names a symbol that is newer: if glibc only gave it a new version, it is a line OLD() with the
 * version that it had before on x86-64; if it is new, write it here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On aarch64 glibc began with 2.17. */
#ifdef __x86_64__
#define SYMBOL(name, version) #name "@GLIBC_" version
#else
#define SYMBOL(name, version) #name "@GLIBC_2.17"
#endif

/* clang-format off */
#define OLD(type, name, params, args, version) \
	type old_##name params; \
	__asm__(".symver old_" #name ", " SYMBOL(name, version)); \
	type __wrap_##name params; \
	type __wrap_##name params { \
		return old_##name args; \
	}

/* Since 2.34 in libc, before in libdl and libpthread. */
OLD(int, dladdr, (const void *address, Dl_info *ret), (address, ret), "2.2.5")
OLD(int, dlclose, (void *handle), (handle), "2.2.5")
OLD(void *, dlopen, (const char *file, int mode), (file, mode), "2.2.5")
OLD(void *, dlvsym, (void *handle, const char *name, const char *version), (handle, name, version), "2.2.5")
OLD(int, pthread_attr_setstacksize, (pthread_attr_t *attr, size_t size), (attr, size), "2.2.5")
OLD(int, pthread_condattr_setclock, (pthread_condattr_t *attr, clockid_t id), (attr, id), "2.3.3")
OLD(int, pthread_create, (pthread_t *ret, const pthread_attr_t *attr, void *(*f)(void *), void *data),
    (ret, attr, f, data), "2.2.5")
OLD(int, pthread_detach, (pthread_t thread), (thread), "2.2.5")
OLD(int, pthread_key_create, (pthread_key_t *key, void (*f)(void *)), (key, f), "2.2.5")
OLD(int, pthread_mutex_trylock, (pthread_mutex_t *mutex), (mutex), "2.2.5")
OLD(int, pthread_once, (pthread_once_t *once, void (*f)(void)), (once, f), "2.2.5")
OLD(int, pthread_setname_np, (pthread_t thread, const char *name), (thread, name), "2.12")
OLD(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value), "2.2.5")
OLD(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), "2.2.5")

/* Since 2.38 what strtoul() is called that also reads binary numbers. */
OLD(unsigned long, strtoul, (const char *text, char **end, int base), (text, end, base), "2.2.5")
unsigned long __wrap___isoc23_strtoul(const char *text, char **end, int base);
unsigned long __wrap___isoc23_strtoul(const char *text, char **end, int base) {
	return old_strtoul(text, end, base);
}

/* A function since 2.33, before inline. */
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st) {
	return (int)syscall(SYS_fstat, fd, st);
}

/* Since 2.30. */
pid_t __wrap_gettid(void);
pid_t __wrap_gettid(void) {
	return (pid_t)syscall(SYS_gettid);
}
/* clang-format on */
