package command

import (
	"context"
	"errors"
	"testing"
	"time"
)

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
