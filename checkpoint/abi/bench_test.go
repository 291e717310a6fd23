package abi

import "testing"

func BenchmarkOutputs(b *testing.B) {
	m := hinted{fourPages().words(pa, pb, 10, pc, 20), false}
	for _, c := range []outputCase{
		{name: "clock_gettime", nr: SYS_CLOCK_GETTIME, args: argv(1, pa)},
		{name: "read", nr: SYS_READ, args: argv(3, pa, 100), ret: 7},
		{name: "readv", nr: SYS_READV, args: argv(3, pa, 2), ret: 30},
		{name: "ioctl", nr: SYS_IOCTL, args: argv(1, 0x5401, pa)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]Range, 0, 8)
			for b.Loop() {
				if _, err := Outputs(dst, m, c.nr, c.args, c.ret); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
