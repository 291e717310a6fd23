//go:build linux && amd64

package record

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
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

// TestRoomNear: memory for stubs is looked for in gaps that have room, those below first, within reach of a jump, and where
// the agent has none yet. Libraries lie close to each other, with small gaps, over more than the 4 MiB that were tried before.
func TestRoomNear(t *testing.T) {
	_, th := newFake(t, Options{})
	sp := th.space()
	const site = 0x7f5544332000
	var list []mapping
	add := func(start, end uint64) {
		list = append(list, mapping{Mapping: checkpoint.Mapping{Start: start, End: end, Prot: checkpoint.ProtRead}})
	}
	const libraries = site - 64<<20
	for a := uint64(libraries); a < site; a += 1 << 20 {
		add(a, a+1<<20-8*checkpoint.PageSize)
	}
	add(site, site+checkpoint.PageSize)
	sp.maps = newMapModel(list)
	room := sp.roomNear(site + 5)
	if len(room) == 0 || room[0] != libraries-2*areaSize {
		t.Fatalf("%#x, and the libraries begin at %#x", room, uint64(libraries))
	}
	above := 0
	for _, at := range room {
		if !within(at, site+5) || len(sp.maps.overlap(at-areaSize, at+2*areaSize)) > 0 {
			t.Errorf("%#x has no room, or is too far", at)
		}
		if at > site {
			above++
		}
	}
	if above == 0 {
		t.Error("none is above")
	}
	sp.agentPages = ranges{{room[0] / checkpoint.PageSize, (room[0] + areaSize) / checkpoint.PageSize}}
	if next := sp.roomNear(site + 5); len(next) == 0 || next[0] != room[1] {
		t.Errorf("%#x, where %#x is the agent's", next, room[0])
	}
	// All that a jump reaches is in use.
	list = nil
	add(site-reach-areaSize, site+reach+areaSize)
	sp.maps = newMapModel(list)
	if room := sp.roomNear(site); len(room) != 0 {
		t.Errorf("%#x where there is no room", room)
	}
	sp.maps = newMapModel(nil)
	for _, addr := range []uint64{0, 1 << 16, abi.TaskSize - 1, ^uint64(0)} {
		for _, at := range sp.roomNear(addr) {
			if at < 1<<16 || at+areaSize > abi.TaskSize {
				t.Errorf("%#x for %#x", at, addr)
			}
		}
	}
}
