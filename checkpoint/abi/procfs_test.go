package abi

import (
	"testing"
	"time"
)

// statTail is what follows the name in /proc/PID/stat, from Linux 6.18.
const statTail = " t 4321 1200 1100 34816 1200 4194560 95 0 1 0 7 3 5 2 20 0 1 0 3567 2289664 215 18446744073709551615 " +
	"93949210107904 93949210124417 140725500000000 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 93949210140080 93949210141696 93949220000000 " +
	"140725500001 140725500002 140725500003 140725500004 0\n"

func TestParseProcStat(t *testing.T) {
	want := ProcStat{
		State: 't', Parent: 4321, Group: 1200, Session: 1100, UserTicks: 7, SystemTicks: 3, ChildUserTicks: 5, ChildSystemTicks: 2, Started: 3567, StartBrk: 93949220000000,
	}
	for _, name := range []string{"cat", "a b", "(sd-pam)", ") R 1 2 3", "a)\n4711 (b", "", "))) Z (("} {
		want.Name = name
		if got, ok := ParseProcStat([]byte("4711 (" + name + ")" + statTail)); !ok || got != want {
			t.Errorf("%q: got %+v, %t", name, got, ok)
		}
	}
	if want.CPU() != 100*time.Millisecond || want.ChildCPU() != 70*time.Millisecond {
		t.Errorf("10 ticks are %v, 7 are %v", want.CPU(), want.ChildCPU())
	}
	for _, text := range []string{"", "4711 (cat", "4711 cat)" + statTail, ")" + statTail + "(", "4711 (cat)", "4711 (cat) R 1 2", "4711 (cat)" + statTail[:150], "4711 (cat) xx" + statTail[2:]} {
		if got, ok := ParseProcStat([]byte(text)); ok {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

func TestProcStatus(t *testing.T) {
	s := ProcStatus("Name:\tSigIgn: ff\\nTracerPid:\t7\nUmask:\t0022\nState:\tt (tracing stop)\nTracerPid:\t4712\nVmRSS:\t    1844 kB\n" +
		"SigPnd:\t0000000000000000\nShdPnd:\t0000000000000200\nSigBlk:\tfffffffffffbfeff\nSigIgn:\t0000000000001000\nSigCgt:\t0000000180000000\nSeccomp:\t2\n")
	for name, want := range map[string]uint64{"SigPnd": 0, "ShdPnd": 0x200, "SigBlk": 0xfffffffffffbfeff, "SigIgn": 0x1000, "SigCgt": 0x180000000, "nosuch": 0, "Name": 0} {
		if got := s.Mask(name); got != want {
			t.Errorf("%s: got %#x, want %#x", name, got, want)
		}
	}
	for name, want := range map[string]int64{"TracerPid": 4712, "VmRSS": 1844, "Seccomp": 2, "nosuch": 0, "State": 0} {
		if got := s.Number(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	if got := s.Field("State"); got != "t (tracing stop)" {
		t.Errorf("State: got %q", got)
	}
}
