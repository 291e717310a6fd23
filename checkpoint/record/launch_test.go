//go:build linux && amd64

package record

import (
	"slices"
	"strings"
	"testing"
)

// TestMeantFor has what a service manager means for the recorder be meant for the program, and
// nothing else changed.
func TestMeantFor(t *testing.T) {
	for _, c := range []struct{ name, env, want string }{
		{"sockets, watchdog", "A=1 LISTEN_PID=10 LISTEN_FDS=2 LISTEN_PIDFDID=77 WATCHDOG_PID=10 WATCHDOG_USEC=5 B=10", "A=1 LISTEN_PID=20 LISTEN_FDS=2 WATCHDOG_PID=20 WATCHDOG_USEC=5 B=10"},
		{"the journal", "SYSTEMD_EXEC_PID=10 MANAGERPID=10", "SYSTEMD_EXEC_PID=20 MANAGERPID=10"},
		{"meant for another", "LISTEN_PID=11 LISTEN_PIDFDID=77 WATCHDOG_PID=100", "LISTEN_PID=11 LISTEN_PIDFDID=77 WATCHDOG_PID=100"},
		{"none", "LISTEN_PID= LISTEN_PIDS=10 =", "LISTEN_PID= LISTEN_PIDS=10 ="},
	} {
		env := strings.Fields(c.env)
		if got := meantFor(env, 10, 20); !slices.Equal(got, strings.Fields(c.want)) || !slices.Equal(env, strings.Fields(c.env)) {
			t.Errorf("%s: %q becomes %q, want %q", c.name, env, got, c.want)
		}
	}
}

// TestLines puts together what is written in parts, and bounds a line.
func TestLines(t *testing.T) {
	long := strings.Repeat("y", maxLine+10)
	for _, c := range []struct {
		parts []string
		want  []string
	}{
		{[]string{"a\nb\n"}, []string{"a", "b"}},
		{[]string{"a", "b\nc", "", "\n\n", "d"}, []string{"ab", "c", ""}},
		{[]string{long + "\nz\n"}, []string{long[:maxLine], "z"}},
		{[]string{"x", long, long, "\nz\n"}, []string{"x" + long[:maxLine-1], "z"}},
	} {
		var l lines
		var got []string
		for _, p := range c.parts {
			l.add([]byte(p), func(line []byte) { got = append(got, string(line)) })
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%.40q gives %.40q, want %.40q", c.parts, got, c.want)
		}
	}
}
