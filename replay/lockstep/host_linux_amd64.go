package lockstep

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"

	"vplay/checkpoint"
	"vplay/replay/x86"
)

// The CPU that lockstep runs on, as /proc/cpuinfo describes it.

// host is what /proc/cpuinfo says of this CPU.
var host = sync.OnceValue(func() checkpoint.Identity {
	var id checkpoint.Identity
	b, _ := os.ReadFile("/proc/cpuinfo") // without it, nothing is known
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "":
			return id // one CPU is enough
		case "vendor_id":
			id.Vendor = value
		case "cpu family":
			_, _ = fmt.Sscan(value, &id.Family) // 0 when it is no number
		case "model":
			_, _ = fmt.Sscan(value, &id.Model)
		case "model name":
			id.Brand = value
		}
	}
	return id
})

func hostVendor() x86.Vendor {
	if v := host().Vendor; v == "AuthenticAMD" || v == "HygonGenuine" {
		return x86.VendorAMD
	}
	return x86.VendorIntel
}

// Unlike says how this CPU is unlike the recorded one, so that flags which the
// manuals leave undefined are not compared; "" when vendor and family are
// the same.
func Unlike(id *checkpoint.Identity) string {
	h := host()
	if h.Vendor == id.Vendor && h.Family == id.Family {
		return ""
	}
	return fmt.Sprintf("recorded on %s family %d model %d, and this is %s family %d model %d",
		id.Vendor, id.Family, id.Model, h.Vendor, h.Family, h.Model)
}

// xcr0 is this machine's XCR0, which the kernel puts into the part of an XSAVE
// image that is software's (arch/x86/include/uapi/asm/sigcontext.h, and
// XFEATURE_MASK in man 5 core's NT_X86_XSTATE as gdb reads it).
func (c *child) xcr0() uint64 {
	const sw = 464
	if len(c.xstate) < sw+8 {
		return 0
	}
	return binary.LittleEndian.Uint64(c.xstate[sw:])
}
