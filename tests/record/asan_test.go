//go:build linux && amd64

package record

import (
	"strings"
	"testing"
)

// TestSanitizers: LeakSanitizer's failure under a tracer does not become the
// program's; what AddressSanitizer finds it says as ever.
func TestSanitizers(t *testing.T) {
	for _, c := range []struct{ flag, what, says string }{
		{"address", "fine", "fine ends"},
		{"address", "leak", "leak ends"},
		{"address", "overflow", "heap-buffer-overflow"},
		{"leak", "fine", "fine ends"},
		{"leak", "leak", "leak ends"},
		{"undefined", "fine", "fine ends"},
	} {
		t.Run(c.flag+" "+c.what, func(t *testing.T) {
			r := run{args: []string{compile(t, "asan", "-fsanitize="+c.flag), c.what}}
			want := r.native(t)
			got, res := r.recorded(t)
			if strings.Contains(got.out, "fatal error") || !strings.Contains(got.out, c.says) {
				t.Errorf("recorded:\n%s", got.out)
			}
			if c.what != "leak" && got.code != want.code {
				t.Errorf("recorded: code %d, native: code %d", got.code, want.code)
			}
			if c.what == "leak" && got.code != 5 {
				t.Errorf("code %d, want the program's own", got.code)
			}
			if !res.Recorded || res.Sanitizer != (c.flag != "undefined") {
				t.Errorf("recorded %v %s, sanitizer %v", res.Recorded, res.Reason, res.Sanitizer)
			}
		})
	}
}
