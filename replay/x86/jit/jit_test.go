//go:build linux && amd64

package jit

import "testing"

func TestOpen(t *testing.T) {
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
}
