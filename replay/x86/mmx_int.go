package x86

// Integer operations on MMX registers, with the arithmetic of sse_lane.go.

func mmxPaddb(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAddB) }
func mmxPaddw(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAddW) }
func mmxPaddd(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAddD) }
func mmxPaddq(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAddQ) }
func mmxPsubb(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneSubB) }
func mmxPsubw(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneSubW) }
func mmxPsubd(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneSubD) }
func mmxPsubq(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneSubQ) }
func mmxPaddsb(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneAddSB) }
func mmxPaddsw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneAddSW) }
func mmxPaddusb(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneAddUSB) }
func mmxPaddusw(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneAddUSW) }
func mmxPsubsb(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneSubSB) }
func mmxPsubsw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneSubSW) }
func mmxPsubusb(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneSubUSB) }
func mmxPsubusw(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneSubUSW) }
func mmxPcmpeqb(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneEqB) }
func mmxPcmpeqw(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneEqW) }
func mmxPcmpeqd(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneEqD) }
func mmxPcmpgtb(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneGtB) }
func mmxPcmpgtw(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneGtW) }
func mmxPcmpgtd(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneGtD) }
func mmxPminub(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneMinUB) }
func mmxPminsw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneMinSW) }
func mmxPmaxub(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneMaxUB) }
func mmxPmaxsw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneMaxSW) }
func mmxPavgb(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAvgB) }
func mmxPavgw(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAvgW) }
func mmxPsadbw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneSad) }
func mmxPmullw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneMulLW) }
func mmxPmulhw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneMulHW) }
func mmxPmulhuw(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneMulHUW) }
func mmxPmulhrsw(c *CPU, in *Inst) Exit  { return c.mmxOp(in, laneMulHRSW) }
func mmxPmuludq(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneMulUDQ) }
func mmxPmaddwd(c *CPU, in *Inst) Exit   { return c.mmxOp(in, laneMaddWD) }
func mmxPmaddubsw(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneMaddUBSW) }
func mmxPsignb(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneSignB) }
func mmxPsignw(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneSignW) }
func mmxPsignd(c *CPU, in *Inst) Exit    { return c.mmxOp(in, laneSignD) }
func mmxPand(c *CPU, in *Inst) Exit      { return c.mmxOp(in, laneAnd) }
func mmxPandn(c *CPU, in *Inst) Exit     { return c.mmxOp(in, laneAndn) }
func mmxPor(c *CPU, in *Inst) Exit       { return c.mmxOp(in, laneOr) }
func mmxPxor(c *CPU, in *Inst) Exit      { return c.mmxOp(in, laneXor) }
func mmxPabsb(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(_, b uint64) uint64 { return laneAbsB(b) })
}

func mmxPabsw(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(_, b uint64) uint64 { return laneAbsW(b) })
}

func mmxPabsd(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(_, b uint64) uint64 { return laneAbsD(b) })
}
