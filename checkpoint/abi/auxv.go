package abi

import "encoding/binary"

// The auxiliary vector, which the kernel puts on a new program's stack: its types with
// their names, and how it is read. The numbers are those of the kernel's headers, named
// below. What the entries of one program mean is for who reads them.

// Types of the auxiliary vector: include/uapi/linux/auxvec.h,
// arch/x86/include/uapi/asm/auxvec.h.
const (
	AT_NULL              = 0
	AT_IGNORE            = 1
	AT_EXECFD            = 2
	AT_PHDR              = 3
	AT_PHENT             = 4
	AT_PHNUM             = 5
	AT_PAGESZ            = 6
	AT_BASE              = 7
	AT_FLAGS             = 8
	AT_ENTRY             = 9
	AT_NOTELF            = 10
	AT_UID               = 11
	AT_EUID              = 12
	AT_GID               = 13
	AT_EGID              = 14
	AT_PLATFORM          = 15
	AT_HWCAP             = 16
	AT_CLKTCK            = 17
	AT_SECURE            = 23
	AT_BASE_PLATFORM     = 24
	AT_RANDOM            = 25
	AT_HWCAP2            = 26
	AT_RSEQ_FEATURE_SIZE = 27
	AT_RSEQ_ALIGN        = 28
	AT_HWCAP3            = 29
	AT_HWCAP4            = 30
	AT_EXECFN            = 31
	AT_SYSINFO           = 32
	AT_SYSINFO_EHDR      = 33
	AT_MINSIGSTKSZ       = 51
)

// HWCAP2_FSGSBASE is the bit of AT_HWCAP2 that says that user mode may use the
// FSGSBASE instructions: arch/x86/include/uapi/asm/hwcap2.h.
const HWCAP2_FSGSBASE = 1 << 1

var auxNames = map[uint64]string{
	AT_NULL: "AT_NULL", AT_IGNORE: "AT_IGNORE", AT_EXECFD: "AT_EXECFD", AT_PHDR: "AT_PHDR", AT_PHENT: "AT_PHENT",
	AT_PHNUM: "AT_PHNUM", AT_PAGESZ: "AT_PAGESZ", AT_BASE: "AT_BASE", AT_FLAGS: "AT_FLAGS", AT_ENTRY: "AT_ENTRY",
	AT_NOTELF: "AT_NOTELF", AT_UID: "AT_UID", AT_EUID: "AT_EUID", AT_GID: "AT_GID", AT_EGID: "AT_EGID",
	AT_PLATFORM: "AT_PLATFORM", AT_HWCAP: "AT_HWCAP", AT_CLKTCK: "AT_CLKTCK", AT_SECURE: "AT_SECURE",
	AT_BASE_PLATFORM: "AT_BASE_PLATFORM", AT_RANDOM: "AT_RANDOM", AT_HWCAP2: "AT_HWCAP2",
	AT_RSEQ_FEATURE_SIZE: "AT_RSEQ_FEATURE_SIZE", AT_RSEQ_ALIGN: "AT_RSEQ_ALIGN", AT_HWCAP3: "AT_HWCAP3",
	AT_HWCAP4: "AT_HWCAP4", AT_EXECFN: "AT_EXECFN", AT_SYSINFO: "AT_SYSINFO", AT_SYSINFO_EHDR: "AT_SYSINFO_EHDR",
	AT_MINSIGSTKSZ: "AT_MINSIGSTKSZ",
}

// AuxName returns the name of an auxiliary vector type, "AT_n" when it has none.
func AuxName(t uint64) string {
	if n, ok := auxNames[t]; ok {
		return n
	}
	return "AT_" + utoa(t)
}

// Aux is one entry of the auxiliary vector.
type Aux struct{ Type, Value uint64 }

// ParseAuxv splits an auxiliary vector as /proc/PID/auxv gives it: pairs of
// 64-bit words up to AT_NULL, which is left out, or to the last whole pair.
func ParseAuxv(b []byte) []Aux {
	var v []Aux
	for ; len(b) >= 16; b = b[16:] {
		a := Aux{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
		if a.Type == AT_NULL {
			break
		}
		v = append(v, a)
	}
	return v
}
