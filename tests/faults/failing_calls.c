/* Loaded with LD_PRELOAD: system calls on files below one folder are counted, and one of them fails or is the last.

   faults_arm(folder, number, outcome, is_lasting)   count from 0; the call `number` has the outcome:
       > 0   it fails with this errno; with is_lasting so does every later call that takes room on the disk
       -1    a write takes half of its bytes
       -2    the process is killed before the call; -3: behind it; -4: a write takes half of its bytes, then as -3
   faults_trace(names, size)   index into faults_name of each call so far, returns how many there were
   close() closes whatever it answers, as the kernel does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE, WRITEV, PWRITE, OPEN, LINK, RENAME, CLOSE, FSYNC, FTRUNCATE, MKDIR, FCHMOD, PWRITEV, UNLINK, CALLS };
static const char *const call_names[CALLS] = {
    "write", "writev", "pwrite", "open", "link", "rename", "close", "fsync", "ftruncate", "mkdir", "fchmod",
    "pwritev", "unlink"};
enum { SHORT = -1, KILL_BEFORE = -2, KILL_BEHIND = -3, KILL_HALF = -4 };
#define MOST_CALLS 65536

static char folder[PATH_MAX];
static size_t folder_size;
static int outcome, is_lasting;
static long turn = -1;
static atomic_long calls;
static atomic_int is_armed;
static unsigned char trace[MOST_CALLS];

void faults_arm(const char *path, long number, int what, int lasting) {
    folder_size = strlen(path);
    memcpy(folder, path, folder_size + 1);
    turn = number;
    outcome = what;
    is_lasting = lasting;
    atomic_store(&calls, 0);
    atomic_store(&is_armed, 1);
}

const char *faults_name(int call) { return call >= 0 && call < CALLS ? call_names[call] : NULL; }

long faults_trace(unsigned char *names, long size) {
    long count = atomic_load(&calls);
    if (count > MOST_CALLS) count = MOST_CALLS;
    if (count < size) size = count;
    memcpy(names, trace, (size_t)size);
    return count;
}

static int is_below(const char *path) {
    return strncmp(path, folder, folder_size) == 0 && (path[folder_size] == '/' || path[folder_size] == 0 || path[folder_size] == ' ');
}

static int is_fd_below(int fd) {
    char link[64], path[PATH_MAX];
    if (!atomic_load(&is_armed) || fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static int is_path_below(int dir_fd, const char *path) {
    if (!atomic_load(&is_armed)) return 0;
    if (path[0] == '/') return is_below(path);
    return dir_fd != AT_FDCWD && is_fd_below(dir_fd);
}

static void end_process(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* What becomes of this call: 0 for nothing special. */
static int chosen(int call, int takes_room) {
    long number = atomic_fetch_add(&calls, 1);
    if (number < MOST_CALLS) trace[number] = (unsigned char)call;
    if (turn < 0 || number < turn) return 0;
    if (number > turn && !(is_lasting && outcome > 0 && takes_room)) return 0;
    if (outcome == KILL_BEFORE) end_process();
    return outcome;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_OR(what, value) \
    do { \
        if ((what) > 0) { errno = (what); return -1; } \
        __typeof__(value) answer = (value); \
        if ((what) == KILL_BEHIND || (what) == KILL_HALF) end_process(); \
        return answer; \
    } while (0)

static size_t some_of(int what, size_t size) { return (what == SHORT || what == KILL_HALF) && size > 1 ? size / 2 : size; }

ssize_t write(int fd, const void *data, size_t size) {
    int what = is_fd_below(fd) ? chosen(WRITE, 1) : 0;
    FAIL_OR(what, NEXT(write)(fd, data, some_of(what, size)));
}

static ssize_t write_some(int fd, const struct iovec *parts, int count, int what) {
    if (what != SHORT && what != KILL_HALF) return NEXT(writev)(fd, parts, count);
    return NEXT(write)(fd, parts[0].iov_base, some_of(what, parts[0].iov_len));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    int what = is_fd_below(fd) ? chosen(WRITEV, 1) : 0;
    FAIL_OR(what, write_some(fd, parts, count, what));
}

#define PWRITE(name, offset_type) \
    ssize_t name(int fd, const void *data, size_t size, offset_type offset) { \
        int what = is_fd_below(fd) ? chosen(PWRITE, 1) : 0; \
        FAIL_OR(what, NEXT(name)(fd, data, some_of(what, size), offset)); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

static int makes_file(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

#define OPEN_MODE \
    mode_t mode = 0; \
    if (makes_file(flags)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        OPEN_MODE \
        int what = is_path_below(AT_FDCWD, path) ? chosen(OPEN, makes_file(flags)) : 0; \
        FAIL_OR(what, NEXT(name)(path, flags, mode)); \
    }
#define OPENAT(name) \
    int name(int dir_fd, const char *path, int flags, ...) { \
        OPEN_MODE \
        int what = is_path_below(dir_fd, path) ? chosen(OPEN, makes_file(flags)) : 0; \
        FAIL_OR(what, NEXT(name)(dir_fd, path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int link(const char *from, const char *to) {
    int what = is_path_below(AT_FDCWD, to) ? chosen(LINK, 1) : 0;
    FAIL_OR(what, NEXT(link)(from, to));
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
    int what = is_path_below(to_fd, to) ? chosen(LINK, 1) : 0;
    FAIL_OR(what, NEXT(linkat)(from_fd, from, to_fd, to, flags));
}

int rename(const char *from, const char *to) {
    int what = is_path_below(AT_FDCWD, to) ? chosen(RENAME, 1) : 0;
    FAIL_OR(what, NEXT(rename)(from, to));
}

int renameat(int from_fd, const char *from, int to_fd, const char *to) {
    int what = is_path_below(to_fd, to) ? chosen(RENAME, 1) : 0;
    FAIL_OR(what, NEXT(renameat)(from_fd, from, to_fd, to));
}

int close(int fd) {
    int what = is_fd_below(fd) ? chosen(CLOSE, 0) : 0;
    int result = NEXT(close)(fd);
    FAIL_OR(what, result);
}

int fsync(int fd) {
    int what = is_fd_below(fd) ? chosen(FSYNC, 0) : 0;
    FAIL_OR(what, NEXT(fsync)(fd));
}

#define FTRUNCATE(name, size_type) \
    int name(int fd, size_type size) { \
        int what = is_fd_below(fd) ? chosen(FTRUNCATE, 0) : 0; \
        FAIL_OR(what, NEXT(name)(fd, size)); \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

int mkdir(const char *path, mode_t mode) {
    int what = is_path_below(AT_FDCWD, path) ? chosen(MKDIR, 1) : 0;
    FAIL_OR(what, NEXT(mkdir)(path, mode));
}

int mkdirat(int dir_fd, const char *path, mode_t mode) {
    int what = is_path_below(dir_fd, path) ? chosen(MKDIR, 1) : 0;
    FAIL_OR(what, NEXT(mkdirat)(dir_fd, path, mode));
}

int fchmod(int fd, mode_t mode) {
    int what = is_fd_below(fd) ? chosen(FCHMOD, 0) : 0;
    FAIL_OR(what, NEXT(fchmod)(fd, mode));
}

static ssize_t write_some_at(int fd, const struct iovec *parts, int count, off_t offset, int what) {
    if (what != SHORT && what != KILL_HALF) return NEXT(pwritev)(fd, parts, count, offset);
    return NEXT(pwrite)(fd, parts[0].iov_base, some_of(what, parts[0].iov_len), offset);
}

#define PWRITEV_OF(name, offset_type) \
    ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset) { \
        int what = is_fd_below(fd) ? chosen(PWRITEV, 1) : 0; \
        FAIL_OR(what, write_some_at(fd, parts, count, offset, what)); \
    }
PWRITEV_OF(pwritev, off_t)
PWRITEV_OF(pwritev64, off64_t)

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    (void)flags;
    return pwritev(fd, parts, count, offset);
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
    (void)flags;
    return pwritev64(fd, parts, count, offset);
}

int unlink(const char *path) {
    int what = is_path_below(AT_FDCWD, path) ? chosen(UNLINK, 0) : 0;
    FAIL_OR(what, NEXT(unlink)(path));
}

int unlinkat(int dir_fd, const char *path, int flags) {
    int what = is_path_below(dir_fd, path) ? chosen(UNLINK, 0) : 0;
    FAIL_OR(what, NEXT(unlinkat)(dir_fd, path, flags));
}

int rmdir(const char *path) {
    int what = is_path_below(AT_FDCWD, path) ? chosen(UNLINK, 0) : 0;
    FAIL_OR(what, NEXT(rmdir)(path));
}
