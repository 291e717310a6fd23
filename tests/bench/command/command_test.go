package command

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"vplay/tests/bench/meter"
	"vplay/tests/need"
)

func TestMain(m *testing.M) {
	meter.Child()
	os.Exit(m.Run())
}

// TestServerEnds: a server that ends before it listens is not waited for.
func TestServerEnds(t *testing.T) {
	need.LinuxAMD64(t)
	sleep := need.Program(t, "sleep")
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"0.1": "", "never": "exit code 1"} {
		start := time.Now()
		s, err := Start(meter.Command{Args: []string{sleep, args}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listening(t.Context(), net.JoinHostPort("127.0.0.1", port)); err == nil || time.Since(start) > 20*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := s.Stop(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("it ends by %v, want %q", err, want)
		}
	}
}

// TestServer waits for one, and ends it in order.
func TestServer(t *testing.T) {
	need.LinuxAMD64(t)
	sleep := need.Program(t, "sleep")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := Start(meter.Command{Args: []string{sleep, "60"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listening(t.Context(), l.Addr().String()); err != nil {
		t.Error(err)
	}
	if err := s.End("/no/such/program", meter.Terminate); err == nil {
		t.Error("a program that does not run ends in order")
	}
}

// TestClients: the times of all clients are there, in order, and one that fails ends the others.
func TestClients(t *testing.T) {
	took, err := Clients(t.Context(), 3, func(_ context.Context, number int, took *[]time.Duration) error {
		*took = append(*took, time.Duration(number), time.Duration(number))
		return nil
	})
	if want := []time.Duration{0, 0, 1, 1, 2, 2}; err != nil || len(took) != len(want) || took[0] != 0 || took[3] != 1 || took[5] != 2 {
		t.Errorf("%v, %v, want %v", took, err, want)
	}
	failed := errors.New("refused")
	if _, err := Clients(t.Context(), 3, func(ctx context.Context, number int, _ *[]time.Duration) error {
		if number == 1 {
			return failed
		}
		<-ctx.Done()
		return ctx.Err()
	}); !errors.Is(err, failed) {
		t.Errorf("it fails by %v", err)
	}
}

// TestModes refuses what there is not, and names what there is.
func TestModes(t *testing.T) {
	all := []string{"native", "agent"}
	if got, err := Modes(all, "agent, native"); err != nil || len(got) != 2 || got[0] != "agent" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Modes(all, "rr"); err == nil || err.Error() != `there is no way to run "rr"; there are native, agent` {
		t.Error(err)
	}
}
