package sandbox

import "golang.org/x/sys/unix"

// What of the seccomp filter is arm64's alone: the number of the architecture and the
// calls that it has besides. The filter is in filter_linux.go.

const auditArch = unix.AUDIT_ARCH_AARCH64

// archCalls are those that this processor has besides.
var archCalls = []uint32{unix.SYS_NEWFSTATAT, unix.SYS_GETRLIMIT}
