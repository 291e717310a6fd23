package x86

// Names of faults, for people.

var faultNames = [...]string{
	FaultNone:        "no fault",
	FaultNotMapped:   "page fault (not mapped)",
	FaultProtection:  "page fault (protection)",
	FaultNotCaptured: "access to a byte that was not captured",
	FaultBeyondEOF:   "bus error (behind the end of the file)",
	FaultNonCanon:    "general protection (address not canonical)",
	FaultGP:          "general protection",
	FaultDE:          "divide error",
	FaultUD:          "undefined instruction",
	FaultMF:          "x87 exception",
	FaultXM:          "SIMD exception",
	FaultAC:          "alignment check",
	FaultBP:          "breakpoint instruction",
	FaultDB:          "debug exception",
	FaultOF:          "overflow trap",
}

// String names the fault for people.
func (k FaultKind) String() string {
	if int(k) < len(faultNames) {
		return faultNames[k]
	}
	return "unknown fault"
}
