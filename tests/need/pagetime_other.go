//go:build !linux

package need

import "time"

// What memory costs is measured on Linux alone.

// DearPages is for Linux, where programs are recorded.
func DearPages() bool { return false }

// PageTime is likewise.
func PageTime() time.Duration { return 0 }
