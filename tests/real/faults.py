"""Faults of file systems that this kernel cannot mount: no hard links, and a quota that is used up."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# link(2) and linkat(2) fail in a program and all that it starts, as on a file system without hard links. It needs root.
_WITHOUT_LINKS = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_link
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_link, 1, 0),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (count < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("seccomp");
        return 125;
    }
    execvp(words[1], words + 1);
    perror(words[1]);
    return 127;
}
"""
# Preloaded: a full disk is reported as a quota that is used up, and has free space, as where a quota is the limit.
_QUOTA = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#define SAME(type, name, parameters, arguments)                         \
    type name parameters {                                              \
        type (*real) parameters = dlsym(RTLD_NEXT, #name);              \
        type result = real arguments;                                   \
        if (result == -1 && errno == ENOSPC) errno = EDQUOT;            \
        return result;                                                  \
    }
#define FREE(name, first, kind)                                         \
    int name(first where, struct kind *found) {                         \
        int (*real)(first, struct kind *) = dlsym(RTLD_NEXT, #name);    \
        int result = real(where, found);                                \
        if (!result) found->f_bfree = found->f_bavail = (64ULL << 30) / found->f_frsize; \
        return result;                                                  \
    }
#define OPEN(name)                                                      \
    int name(const char *path, int flags, ...) {                        \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);  \
        va_list more;                                                   \
        va_start(more, flags);                                          \
        int mode = va_arg(more, int);                                   \
        va_end(more);                                                   \
        int result = real(path, flags, mode);                           \
        if (result == -1 && errno == ENOSPC) errno = EDQUOT;            \
        return result;                                                  \
    }
SAME(ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
SAME(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
SAME(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
SAME(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size))
SAME(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size))
SAME(ssize_t, copy_file_range, (int from, off64_t *at, int to, off64_t *into, size_t size, unsigned flags),
     (from, at, to, into, size, flags))
SAME(int, mkdir, (const char *path, mode_t mode), (path, mode))
SAME(int, mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode))
SAME(int, rename, (const char *from, const char *to), (from, to))
SAME(int, symlink, (const char *target, const char *path), (target, path))
SAME(int, link, (const char *from, const char *to), (from, to))
SAME(int, ftruncate, (int file, off_t size), (file, size))
SAME(int, ftruncate64, (int file, off64_t size), (file, size))
OPEN(open)
OPEN(open64)
FREE(statvfs, const char *, statvfs)
FREE(statvfs64, const char *, statvfs64)
FREE(fstatvfs, int, statvfs)
FREE(fstatvfs64, int, statvfs64)
"""


def without_links(directory: Path) -> Path:
    """A program that runs another one where no hard link can be made."""
    return _compiled(directory / "without-links", _WITHOUT_LINKS)


def quota_library(directory: Path) -> Path:
    """A library for LD_PRELOAD: what fails for a full disk fails for a quota."""
    return _compiled(directory / "quota.so", _QUOTA, "-shared", "-fPIC", "-ldl")


def _compiled(output: Path, source: str, *options: str) -> Path:
    file = output.with_suffix(".c")
    file.write_text(source)
    subprocess.run(["cc", "-O1", str(file), "-o", str(output), *options], check=True, capture_output=True)
    return output
