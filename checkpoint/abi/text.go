package abi

import "strconv"

// Numbers as text, for all of this package that prints.

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

func utoa(v uint64) string { return strconv.FormatUint(v, 10) }

// hex returns v as C writes it: 0x1f.
func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

// octal returns v as C writes it: 0644.
func octal(v uint64) string {
	if v == 0 {
		return "0"
	}
	return "0" + strconv.FormatUint(v, 8)
}
