package bench

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// BenchmarkTouched measures what recording and verifying cost a program that touches a
// gigabyte once and crashes: processor time of all processes, least of the runs.
func BenchmarkTouched(b *testing.B) {
	guest := filepath.Join(b.TempDir(), "pages")
	if out, err := exec.Command(need.Program(b, "gcc"), "-O1", "-o", guest, filepath.Join("..", "guest", "pages.c")).CombinedOutput(); err != nil {
		b.Fatalf("gcc: %v\n%s", err, out)
	}
	v := vplayd(b)
	for _, kind := range []string{"one", "eight"} {
		b.Run(kind, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "pages.vplay")
			native, recorded, verified := time.Hour, time.Hour, time.Hour
			for b.Loop() {
				native = min(native, processorTime(b, guest, "1024", kind))
				recorded = min(recorded, processorTime(b, v, "record", "-q", "-f", "--slim", "never", "-o", path, "--", guest, "1024", kind))
				verified = min(verified, processorTime(b, v, "verify", path))
			}
			b.ReportMetric(native.Seconds(), "native-s")
			b.ReportMetric(recorded.Seconds(), "recorded-s")
			b.ReportMetric(recorded.Seconds()/native.Seconds(), "x-native")
			b.ReportMetric(verified.Seconds(), "verify-s")
		})
	}
}

// processorTime runs a command, however it ends, and returns the processor time that it
// and its children took.
func processorTime(b *testing.B, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	_ = cmd.Run() // the guest crashes, and the recorder dies of the same signal
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Exited() && ws.ExitStatus() != 0 {
		b.Fatalf("%v: exit code %d", args, ws.ExitStatus())
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
