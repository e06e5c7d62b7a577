"""System calls that are denied, by purpose, with their numbers: (x86_64, aarch64 or None).

Sources: `asm/unistd_64.h` and `asm-generic/unistd.h` of Linux.
"""

Numbers = dict[str, tuple[int, int | None]]

NETWORK: Numbers = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
}  # fmt: skip
# Other processes, their memory, their descriptors, and shared objects that outlive this one.
OTHERS: Numbers = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "process_madvise": (440, 440), "move_pages": (279, 239), "migrate_pages": (256, 238),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
}  # fmt: skip
# Wide and rarely needed doors into the kernel.
KERNEL: Numbers = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None),
}  # fmt: skip
PROCESSES: Numbers = {
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220),
    "execve": (59, 221), "execveat": (322, 281),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip
# What native code could do to the scheduling of its neighbours.
SCHEDULE: Numbers = {
    "setpriority": (141, 140), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip
# What native code could do to files beside Landlock.
NATIVE: Numbers = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "creat": (85, None), "truncate": (76, 45),
    "ftruncate": (77, 46), "fallocate": (285, 47), "unlink": (87, None), "unlinkat": (263, 35),
    "rmdir": (84, None), "mkdir": (83, None), "mkdirat": (258, 34), "mknod": (133, None),
    "mknodat": (259, 33), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "openat2": (437, 437),
}  # fmt: skip
# Answered with "not implemented", so that the C library falls back to calls that can be judged.
HIDDEN: Numbers = {"clone3": (435, 435)}

SECCOMP = (317, 277)

# Calls that are judged by one argument.
OPEN: Numbers = {"open": (2, None)}
OPENAT: Numbers = {"openat": (257, 56)}
CLONE: Numbers = {"clone": (56, 220)}
TGKILL: Numbers = {"tgkill": (234, 131)}
PRLIMIT: Numbers = {"prlimit64": (302, 261)}
