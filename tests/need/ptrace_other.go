//go:build !linux

package need

// canTrace is not asked: LinuxAMD64 comes first.
func canTrace() bool { return false }
