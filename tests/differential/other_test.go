//go:build !linux || !amd64

package differential

import (
	"testing"

	"vplay/tests/need"
)

// TestRowsAgainstCPU needs the CPU that is emulated; what else is tested here
// runs anywhere.
func TestRowsAgainstCPU(t *testing.T) {
	need.LinuxAMD64(t)
}
