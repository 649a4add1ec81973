/* Keeps a process alive when a client shortens a shared memory segment that is mapped here.

   Touching a page behind the end of a mapped file is SIGBUS, which ends the process (mmap(2)). For the spans that are
   covered, the handler puts fresh pages of zeros in place of the rest of the span and marks it as torn, and the
   thread that touched it goes on; libwayland and systemd-journald do the same. Any other SIGBUS goes to the handler that was there
   before. The handler only uses mmap, sigaction and raise and what lies in the table, all of which a handler may, and
   it needs no lock of Python's: the thread that was interrupted may belong to a framework.

   What else is here is asked for each request, when the caches hold its tensors and little of the interpreter. */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPANS 4096

/* `version` is odd while the span changes. The handler may run on another thread meanwhile, and must not take the end of
   one span for that of another: it would map zeros over memory of another owner. */
struct span {
    _Atomic unsigned version;
    _Atomic uintptr_t begin;
    _Atomic uintptr_t end;
};

static struct span spans[SPANS];

atomic_uchar naiad_guard_torn[SPANS]; /* 1 for a span that is */

static struct sigaction before;
static uintptr_t page_size;

static int mend(uintptr_t address) {
    for (size_t each = 0; each < SPANS; each++) {
        struct span *span = &spans[each];
        unsigned version = atomic_load(&span->version);
        uintptr_t begin = atomic_load(&span->begin), end = atomic_load(&span->end);
        if (address < begin || address >= end) continue;
        /* the thread that touched the address holds its span, which does not change then: one that does is another */
        if (version & 1 || atomic_load(&span->version) != version) continue;
        uintptr_t page = address & ~(page_size - 1);
        atomic_store(&naiad_guard_torn[each], 1);
        return mmap((void *)page, end - page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
               MAP_FAILED;
    }
    return 0;
}

static void on_sigbus(int number, siginfo_t *info, void *context) {
    int saved = errno;
    if (info->si_code > 0 && mend((uintptr_t)info->si_addr)) {
        errno = saved;
    } else if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        sigaction(SIGBUS, &before, NULL); /* a fault happens again, and ends the process as it would have without us */
        if (info->si_code <= 0) raise(number);
    } else {
        before.sa_handler(number);
    }
}

/* Handle SIGBUS from now on, also when another library has taken it over meanwhile; whether that worked. */
int naiad_guard_install(void) {
    struct sigaction now, ours;
    if (sigaction(SIGBUS, NULL, &now)) return 0;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus) return 1;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    before = now;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_sigbus;
    /* without SA_ONSTACK: a thread's stack for signals may be too small for its registers (AVX-512, AMX), which is the end
       of the process, and what is covered is never the stack itself */
    ours.sa_flags = SA_SIGINFO;
    sigemptyset(&ours.sa_mask);
    return !sigaction(SIGBUS, &ours, NULL);
}

/* One caller at a time: the interpreter's lock is held. */
static void change(struct span *span, uintptr_t begin, uintptr_t end) {
    atomic_fetch_add(&span->version, 1);
    atomic_store(&span->begin, begin);
    atomic_store(&span->end, end);
    atomic_fetch_add(&span->version, 1);
}

/* Cover the pages from `begin` on; the index in the table, -1 when it is full. One caller at a time. */
int naiad_guard_cover(uintptr_t begin, size_t size) {
    for (int each = 0; each < SPANS; each++) {
        struct span *span = &spans[each];
        if (atomic_load(&span->begin)) continue;
        atomic_store(&naiad_guard_torn[each], 0);
        change(span, begin, begin + size);
        return each;
    }
    return -1;
}

/* Forget a span, before its pages are unmapped. */
void naiad_guard_uncover(int span) {
    change(&spans[span], 0, 0);
}

/* Whether any of these pages of a private mapping is no longer its file's, by /proc/self/pagemap, which `pagemap` is
   (docs.kernel.org/admin-guide/mm/pagemap.html); also where that cannot be read. */
static int is_written(int pagemap, uintptr_t begin, size_t size) {
    uint64_t entries[512], first = begin / page_size, left = size / page_size;
    while (left) {
        size_t some = left < 512 ? left : 512;
        if (pread(pagemap, entries, some * sizeof *entries, first * sizeof *entries) !=
            (ssize_t)(some * sizeof *entries))
            return 1;
        for (size_t each = 0; each < some; each++)
            if (entries[each] >> 62 && !(entries[each] >> 61 & 1)) return 1;
        first += some;
        left -= some;
    }
    return 0;
}

/* Whether a file has memory for all that it holds, up to `end` at least: touching a hole would make it memory. */
int naiad_guard_is_whole(int file, long long end) {
    struct stat status;
    return !fstat(file, &status) && status.st_size >= end && status.st_blocks * 512LL >= status.st_size;
}

/* What became of lent pages: 1 when their span is torn, 2 when they were written to, or both. With the page map a loan of
   600 KB that is read takes 31 us, where its pages are dropped instead (MADV_DONTNEED) 60, a copy 47. */
int naiad_guard_taken_back(int span, int pagemap, uintptr_t begin, size_t size) {
    return atomic_load(&naiad_guard_torn[span]) | (is_written(pagemap, begin, size) ? 2 : 0);
}

/* Put pages of this process's own in place of covered ones, with what these hold now; 0 when there is no memory. */
int naiad_guard_detach(void *begin, size_t size) {
    void *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED) return 0;
    memcpy(own, begin, size);
    if (mremap(own, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, begin) != MAP_FAILED) return 1;
    munmap(own, size);
    return 0;
}
