package meter

import (
	"cmp"
	"slices"
)

// The figures of many that the commands compute alike.

// Median returns the middle value of v, which is not empty.
func Median[T cmp.Ordered](v []T) T { return Percentile(v, 0.5) }

// Percentile returns the value that a share of v, which is not empty, is not above: 1 is for the greatest.
func Percentile[T cmp.Ordered](v []T, share float64) T {
	v = slices.Sorted(slices.Values(v))
	return v[min(int(share*float64(len(v))), len(v)-1)]
}
