package differential

import (
	"errors"
	"testing"
)

// needs is the one place where tests of this package are skipped: err names a
// capability this machine lacks; every other error fails the test.
func needs(t testing.TB, err error) {
	t.Helper()
	var m *MissingError
	if errors.As(err, &m) {
		t.Skipf("missing capability: %s", m.What)
	}
	if err != nil {
		t.Fatal(err)
	}
}
