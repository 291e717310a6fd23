package x86

// op is an instruction of a block as the run loop executes it, or a comparison
// and the branch behind it: what the loop's case needs of the Inst, which lies
// beside (blockRest.insts) and is what the handler gets on the generic path.
//
// It is 32 bytes: blocks are walked from end to end, so its size is what the
// host's data cache holds of the guest's code.
type op struct {
	kind  uint16 // case of the loop, kGeneric = call the handler
	off   uint16 // distance from the start of the block, in bytes
	idx   uint8  // instructions of the block before this one
	exit  uint8  // of a direct branch its place in block.exits
	flags uint8  // opEnd, opFused
	cond  uint8  // of a fused pair the branch's condition

	// As in Inst; but rm is the destination where the binding swaps.
	reg, rm, vvvv, base, index, scale uint8

	imm  uint64
	disp int64
}

// The flags of an op.
const (
	opEnd   = 1 << iota // the handler sets RIP: InstEnd
	opFused             // a comparison and the branch behind it
)

// decoded is an instruction of a block and what executes it.
type decoded struct {
	Inst
	fn Handler
}

// handler returns what executes in.
func (c *CPU) handler(in *Inst) Handler {
	r := &tablesVar.rows[in.Row]
	if in.Flags&instUnsure != 0 {
		return intRefuse
	}
	if c.ID.Vendor != VendorAMD {
		if use := r.use.of(in) &^ xfeatSSE; use != 0 {
			return useHandlers[use]
		}
	}
	return r.fn
}
