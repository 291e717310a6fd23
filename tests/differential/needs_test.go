package differential

import (
	"errors"
	"testing"

	"vplay/tests/need"
)

// needs fails the test for an error, or skips it when err names a capability
// that this machine lacks.
func needs(t testing.TB, err error) {
	t.Helper()
	var m *MissingError
	if errors.As(err, &m) {
		need.Machine(t, m.What, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}
