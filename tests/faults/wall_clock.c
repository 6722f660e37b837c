/* Moves the wall clock of one process: preloaded, it adds the nanoseconds that stand in the file $WALL_CLOCK. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none, *offset_ns = &none;

__attribute__((constructor)) static void find(void) {
    const char *path = getenv("WALL_CLOCK");
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) offset_ns = page;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    long status = syscall(SYS_clock_gettime, clock, at);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = at->tv_sec * INT64_C(1000000000) + at->tv_nsec + *offset_ns;
        at->tv_sec = ns / INT64_C(1000000000);
        at->tv_nsec = ns % INT64_C(1000000000);
    }
    return (int)status;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    at->tv_sec = exact.tv_sec;
    at->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}
