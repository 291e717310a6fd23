package meter

import (
	"cmp"
	"slices"
)

// The one figure of many that both commands compute alike.

// Percentile returns the value that a share of v, which is not empty, is not above: 0.5 is the median, 1 the greatest.
func Percentile[T cmp.Ordered](v []T, share float64) T {
	v = slices.Sorted(slices.Values(v))
	return v[min(int(share*float64(len(v))), len(v)-1)]
}
