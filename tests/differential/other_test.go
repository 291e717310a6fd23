//go:build !linux || !amd64

package differential

import "testing"

// TestRowsAgainstCPU needs the CPU that is emulated; what else is tested here
// runs anywhere.
func TestRowsAgainstCPU(t *testing.T) {
	needs(t, &MissingError{What: "linux/amd64, the emulated machine, as the host"})
}
