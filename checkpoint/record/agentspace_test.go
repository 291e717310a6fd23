//go:build linux && amd64

package record

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
	"vplay/checkpoint/record/agent"
)

// TestDescriptorsForgotten: what the agent knows of descriptors is forgotten at calls, made by the recorder, that change whether they wait.
func TestDescriptorsForgotten(t *testing.T) {
	_, th := newFake(t, Options{})
	shared := make(agent.Shared, agent.Size)
	th.space().agent = &spaceAgent{threadAgent: &threadAgent{shared: shared}}
	defer func() { th.space().agent = nil }()
	for _, c := range []struct {
		name    string
		nr      int64
		command uint64
		forgets bool
	}{
		{"F_SETFL", unix.SYS_FCNTL, abi.F_SETFL, true},
		{"F_GETFL", unix.SYS_FCNTL, abi.F_GETFL, false},
		{"F_SETFL in 32 bits", unix.SYS_FCNTL, 1<<32 | abi.F_SETFL, true},
		{"FIONBIO", unix.SYS_IOCTL, fionbio, true},
		{"FIONBIO in 32 bits", unix.SYS_IOCTL, 1<<32 | fionbio, true},
		{"FIONREAD", unix.SYS_IOCTL, 0x541b, false},
	} {
		shared.ForbidWrites()
		nothing := bytes.Clone(shared)
		shared.AllowWrites(3)
		th.call = call{nr: c.nr, args: [6]uint64{3, c.command}}
		if err := th.agentCall(abi.EffectPlain); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Equal(shared, nothing); got != c.forgets {
			t.Errorf("%s: forgotten %t, want %t", c.name, got, c.forgets)
		}
	}
}
