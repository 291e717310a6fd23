// Command gopanic dies of a nil pointer in Go code, with GOTRACEBACK=crash by SIGABRT.
package main

import "os"

type ledger struct {
	name    string
	entries []int
	next    *ledger
}

var opened = ledger{name: "main", entries: []int{5, 8, 13}}

//go:noinline
func sum(l *ledger, depth int) int {
	total := depth
	for _, e := range l.entries {
		total += e
	}
	return total + sum(l.next, depth+1)
}

func main() {
	os.Exit(sum(&opened, 0))
}
