package x86

// Integer operations on VEX operands that work inside each quadword.

func vpcmpgtw(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneGtW) }
func vpcmpgtd(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneGtD) }
func vpcmpeqw(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneEqW) }
func vpcmpeqd(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneEqD) }
func vpaddq(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneAddQ) }
func vpmullw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMulLW) }
func vpsubusb(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneSubUSB) }
func vpsubusw(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneSubUSW) }
func vpaddusb(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneAddUSB) }
func vpaddusw(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneAddUSW) }
func vpmaxub(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMaxUB) }
func vpavgb(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneAvgB) }
func vpavgw(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneAvgW) }
func vpmulhuw(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneMulHUW) }
func vpmulhw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMulHW) }
func vpsubsb(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneSubSB) }
func vpsubsw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneSubSW) }
func vpminsw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMinSW) }
func vpaddsb(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneAddSB) }
func vpaddsw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneAddSW) }
func vpmaxsw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMaxSW) }
func vpmuludq(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneMulUDQ) }
func vpmaddwd(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneMaddWD) }
func vpsadbw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneSad) }
func vpsubw(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneSubW) }
func vpsubd(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneSubD) }
func vpsubq(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneSubQ) }
func vpaddw(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneAddW) }
func vpaddd(c *CPU, in *Inst) Exit     { return c.vexOp(in, laneAddD) }
func vpmaddubsw(c *CPU, in *Inst) Exit { return c.vexOp(in, laneMaddUBSW) }
func vpsignb(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneSignB) }
func vpsignw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneSignW) }
func vpsignd(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneSignD) }
func vpmulhrsw(c *CPU, in *Inst) Exit  { return c.vexOp(in, laneMulHRSW) }
func vpmuldq(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMulDQ) }
func vpcmpeqq(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneEqQ) }
func vpcmpgtq(c *CPU, in *Inst) Exit   { return c.vexOp(in, laneGtQ) }
func vpminsb(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMinSB) }
func vpminsd(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMinSD) }
func vpminuw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMinUW) }
func vpminud(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMinUD) }
func vpmaxsb(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMaxSB) }
func vpmaxsd(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMaxSD) }
func vpmaxuw(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMaxUW) }
func vpmaxud(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMaxUD) }
func vpmulld(c *CPU, in *Inst) Exit    { return c.vexOp(in, laneMulLD) }
func vpabsb(c *CPU, in *Inst) Exit     { return c.vexMap(in, laneAbsB) }
func vpabsw(c *CPU, in *Inst) Exit     { return c.vexMap(in, laneAbsW) }
func vpabsd(c *CPU, in *Inst) Exit     { return c.vexMap(in, laneAbsD) }

func vpdpbusd(c *CPU, in *Inst) Exit  { return c.vexThree(in, laneDotB) }
func vpdpbusds(c *CPU, in *Inst) Exit { return c.vexThree(in, laneDotBS) }
func vpdpwssd(c *CPU, in *Inst) Exit  { return c.vexThree(in, laneDotW) }
func vpdpwssds(c *CPU, in *Inst) Exit { return c.vexThree(in, laneDotWS) }

// Those that libc's string functions run are written out.

func vpcmpgtb(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{laneGtB(a[0], b[0]), laneGtB(a[1], b[1])}
	if isWide(in) {
		r[2], r[3] = laneGtB(a[2], b[2]), laneGtB(a[3], b[3])
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpcmpeqb(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{laneEqB(a[0], b[0]), laneEqB(a[1], b[1])}
	if isWide(in) {
		r[2], r[3] = laneEqB(a[2], b[2]), laneEqB(a[3], b[3])
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpminub(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{laneMinUB(a[0], b[0]), laneMinUB(a[1], b[1])}
	if isWide(in) {
		r[2], r[3] = laneMinUB(a[2], b[2]), laneMinUB(a[3], b[3])
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpand(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{a[0] & b[0], a[1] & b[1]}
	if isWide(in) {
		r[2], r[3] = a[2]&b[2], a[3]&b[3]
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpandn(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{^a[0] & b[0], ^a[1] & b[1]}
	if isWide(in) {
		r[2], r[3] = ^a[2]&b[2], ^a[3]&b[3]
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpor(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{a[0] | b[0], a[1] | b[1]}
	if isWide(in) {
		r[2], r[3] = a[2]|b[2], a[3]|b[3]
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpxor(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{a[0] ^ b[0], a[1] ^ b[1]}
	if isWide(in) {
		r[2], r[3] = a[2]^b[2], a[3]^b[3]
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpsubb(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{laneSubB(a[0], b[0]), laneSubB(a[1], b[1])}
	if isWide(in) {
		r[2], r[3] = laneSubB(a[2], b[2]), laneSubB(a[3], b[3])
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpaddb(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{laneAddB(a[0], b[0]), laneAddB(a[1], b[1])}
	if isWide(in) {
		r[2], r[3] = laneAddB(a[2], b[2]), laneAddB(a[3], b[3])
	}
	c.V[in.Reg&15] = r
	return ExitNone
}
