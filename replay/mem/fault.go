package mem

// Kinds of accesses, and why one fails. What a fault means to the program is package replay's
// business.

// Access is a kind of memory access.
type Access uint8

// The kinds of access.
const (
	Load Access = iota
	Store
	Exec
)

// FaultKind says why an access failed.
type FaultKind uint8

// The kinds of fault.
const (
	FaultNone        FaultKind = iota
	FaultNotMapped             // no region there
	FaultProtection            // the region does not allow the access
	FaultNotCaptured           // the recording lacks the byte
	FaultBeyondEOF             // mapped, but behind the end of the file, or the like: see SetBusError
	FaultNonCanon              // not a user address at all
)

// Fault is a failed access: where, and why. The zero Fault is none.
type Fault struct {
	Kind   FaultKind
	Access Access
	Addr   uint64
}
