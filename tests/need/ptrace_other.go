//go:build !linux

package need

// Systems other than Linux, which have no ptrace that the recorder could use.

// canTrace is not asked: LinuxAMD64 comes first.
func canTrace() bool { return false }
