package debug

import (
	"fmt"

	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/mem"
)

// What an access to a mapped file ended in SIGBUS for. The signal has the address alone:
// which file that is of, and which of its bytes, is in the memory map.

// BusError says which page of which file the kernel could not give, where a program ended
// because of that. "" where it did not.
func BusError(f *replay.FinalImage) string {
	si := abi.Siginfo(f.Siginfo)
	if len(si) < abi.SizeofSiginfo || si.Signo() != abi.SIGBUS || si.Code() != abi.BUS_ADRERR {
		return ""
	}
	for i := range f.Maps {
		if m := &f.Maps[i]; si.Addr() >= m.Start && si.Addr() < m.End && m.Object != 0 && m.Name != "" {
			at := (si.Addr() - m.Start + m.Offset) &^ (mem.PageSize - 1)
			return fmt.Sprintf("the kernel could not give the page at byte %#x of %s: most often the file has become shorter", at, m.Name)
		}
	}
	return ""
}
