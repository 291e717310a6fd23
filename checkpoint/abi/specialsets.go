package abi

// Sets for printing that are neither plain bits nor plain values: several fields in one
// argument, or a number that is computed. Plain ones are flagSets and enumSets, beside the
// constants.

// funcSet is a set whose format is a function; it knows no single values.
type funcSet func(v uint64) string

func (f funcSet) name(uint64) (string, bool) { return "", false }

func (f funcSet) format(v uint64) string { return f(v) }

// setOpen: the access mode is the low two bits, where 3 is Linux's own "for
// ioctl only".
var setOpen = funcSet(func(v uint64) string {
	access := [...]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"}[v&3]
	if rest := uint64(uint32(v)) &^ 3; rest != 0 {
		return access + "|" + openFlags.format(rest)
	}
	return access
})

// setSocktype: a type in the low four bits, flags above.
var setSocktype = funcSet(func(v uint64) string {
	v = uint64(uint32(v))
	low, rest := setSocktypes.format(v&15), v&^15
	switch {
	case rest == 0 && v != 0:
		return low
	case v&15 == 0:
		return setSockflags.format(rest)
	}
	return low + "|" + setSockflags.format(rest)
})

// setClone: flags above an exit signal in the low byte.
var setClone = funcSet(func(v uint64) string {
	flags, sig := v&^0xff, Signal(v&0xff)
	switch {
	case sig == 0:
		return cloneFlags.format(flags)
	case flags == 0:
		return sig.String()
	}
	return cloneFlags.format(flags) + "|" + sig.String()
})

// setFutex: an operation and two flags.
var setFutex = funcSet(func(v uint64) string {
	text := setFutexop.format(v & 127)
	if v&128 != 0 {
		text += "|FUTEX_PRIVATE_FLAG"
	}
	if v&256 != 0 {
		text += "|FUTEX_CLOCK_REALTIME"
	}
	return text
})

// setIpc: flags above a mode in the low nine bits.
var setIpc = funcSet(func(v uint64) string {
	v = uint64(uint32(v))
	if v&^0o777 == 0 {
		return octal(v)
	}
	if v&0o777 == 0 {
		return ipcFlags.format(v)
	}
	return ipcFlags.format(v&^0o777) + "|" + octal(v&0o777)
})

// setMap: MAP_SHARED_VALIDATE is both sharing bits, and the size of a huge
// page stands in the six highest bits.
var setMap = funcSet(func(v uint64) string {
	v = uint64(uint32(v))
	text, huge := "", v>>26
	v &^= huge << 26
	if v&3 == 3 {
		text, v = "MAP_SHARED_VALIDATE", v&^3
	}
	if v != 0 || text == "" {
		if text != "" {
			text += "|"
		}
		text += mapFlags.format(v)
	}
	if huge != 0 {
		text += "|" + utoa(huge) + "<<MAP_HUGE_SHIFT"
	}
	return text
})

// setIpccmd: the commands that the three control calls share; the others have
// the same numbers for different things.
var setIpccmd = enumSet{
	{ipcRmid, "IPC_RMID"},
	{ipcSet, "IPC_SET"},
	{ipcStat, "IPC_STAT"},
	{ipcInfo, "IPC_INFO"},
}

// ioctlSet names requests.
type ioctlSet struct{}

func (ioctlSet) name(v uint64) (string, bool) {
	row, ok := ioctls[uint32(v)]
	return row.name, ok
}

func (s ioctlSet) format(v uint64) string {
	if n, ok := s.name(v); ok {
		return n
	}
	req := uint32(v)
	dir := [...]string{"_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"}[iocDir(req)]
	return "_IOC(" + dir + ", " + hex(uint64(iocType(req))) + ", " + hex(uint64(req&0xff)) + ", " + hex(iocSize(req)) + ")"
}
