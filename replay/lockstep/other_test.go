//go:build !(linux && amd64)

package lockstep

import (
	"errors"
	"testing"
)

// TestNotSupported: elsewhere there is a clear error.
func TestNotSupported(t *testing.T) {
	if _, err := Run(t.Context(), nil, Options{}); Supported || !errors.Is(err, ErrNotSupported) {
		t.Errorf("%v, %v", Supported, err)
	}
}
