//go:build linux && amd64

package differential

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"vplay/replay/x86"
	"vplay/tests/need"
)

// soak is a comparison of n cases, spread over rows, by several workers with a
// harness each. Cases come in batches of batchSize, each with a stream of
// random numbers of its own: which worker runs one does not matter, so that a
// seed and a count stand for the same cases on any machine.
type soak struct {
	rows  []int
	seed  uint64
	n     int
	limit time.Time

	mu    sync.Mutex
	next  int // the first case of the next batch
	done  int
	err   error
	tally *tally
	ran   map[int]int
	left  LeftOut
	tells bool // print the first failure of a row at once
}

// take returns the first case of a batch and how many it has, 0 at the end.
func (k *soak) take() (first, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil || k.next >= k.n || time.Now().After(k.limit) {
		return 0, 0
	}
	first = k.next
	k.next += batchSize
	return first, min(batchSize, k.n-first)
}

// finish adds the outcome of a batch.
func (k *soak) finish(batch []*Case, l []Failure, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && k.err == nil {
		k.err = err
	}
	k.done += len(batch)
	for _, c := range batch {
		k.ran[c.Row]++
	}
	for _, f := range l {
		if _, known := k.tally.first[f.Case.Row]; k.tells && !known {
			fmt.Printf("%s\n\t%s\n", f.Case.Line(&f.Want), f.Diff)
		}
		k.tally.add([]Failure{f})
	}
}

// work runs batches until there are none.
func (k *soak) work(s *Session) {
	for {
		first, n := k.take()
		if n == 0 {
			return
		}
		g := newStream(k.seed, uint64(first/batchSize), s.Emulator.ID())
		batch := make([]*Case, n)
		for i := range batch {
			batch[i] = g.Case(k.rows[(first+i)%len(k.rows)])
		}
		l, err := s.Check(batch)
		if err != nil {
			err = fmt.Errorf("cases %d to %d of seed %d: %w", first, first+n-1, k.seed, err)
		}
		k.finish(batch, l, err)
	}
}

// differ is how many cases failed.
func (y *tally) differ() (n int) {
	for _, c := range y.count {
		n += c
	}
	return n
}

// progress prints a line every now and then until stop is closed.
func (k *soak) progress(stop chan struct{}, every time.Duration) {
	start := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			k.mu.Lock()
			rate := float64(k.done) / time.Since(start).Seconds()
			left := time.Duration(float64(k.n-k.done) / rate * float64(time.Second))
			fmt.Printf("%3d %% %d cases, %d of %d rows, %d differ, %.0f cases/s, %s left\n", 100*k.done/k.n, k.done,
				len(k.ran), len(k.rows), k.tally.differ(), rate, left.Round(time.Second))
			k.mu.Unlock()
		}
	}
}

// compare runs n cases, spread over the rows, on all cores, and returns the
// failures and how many cases each row had.
func compare(t *testing.T, rows []int, n int, seed uint64, limit time.Duration, every time.Duration) *soak {
	k := &soak{rows: rows, seed: seed, n: n, limit: time.Now().Add(limit), tally: newTally(), ran: map[int]int{}, tells: every > 0}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // a batch is garbage at once
	sessions := make([]*Session, runtime.GOMAXPROCS(0))
	for i := range sessions {
		sessions[i] = newSession(t)
	}
	stop := make(chan struct{})
	if every > 0 {
		go k.progress(stop, every)
	}
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { k.work(s) })
	}
	wg.Wait()
	close(stop)
	if k.err != nil {
		t.Fatal(k.err)
	}
	for _, s := range sessions {
		k.left.add(s.LeftOut)
	}
	return k
}

// TestSoak runs -cases cases from -seed, and says what it did in one line.
func TestSoak(t *testing.T) {
	if *casesFlag == 0 {
		t.Log("no -cases: nothing to do")
		return
	}
	s := newSession(t)
	rows := selectRows(runnable(t), *rowsFlag)
	start := time.Now()
	k := compare(t, rows, *casesFlag, *seedFlag, *forFlag, 10*time.Second)
	y, ran := k.tally, k.ran
	text := y.report(t, s, ran)
	total := 0
	for n := range maps.Values(ran) {
		total += n
	}
	took := time.Since(start)
	head := fmt.Sprintf("%d cases, seed %d, %s: %d of %d rows, %d cases differ in %d rows (%v); %s, %.0f cases/s\n", total, *seedFlag,
		need.CPUName(), len(ran), len(rows), y.differ(), len(y.first), k.left, took.Round(time.Second), float64(total)/took.Seconds())
	fmt.Print(head)
	if *findingsFlag != "" {
		if err := os.WriteFile(filepath.Clean(*findingsFlag), []byte(head+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(y.first) > 0 {
		t.Errorf("%d rows differ from the CPU\n%s", len(y.first), text)
	}
}

// TestSoakIsRepeatable: a seed stands for the same cases, by however many workers.
func TestSoakIsRepeatable(t *testing.T) {
	row := len(x86.Rows()) / 2
	for n := range uint64(3) {
		a, b := newStream(5, n, amd), newStream(5, n, amd)
		for range 20 {
			if x, y := a.Case(row).String(), b.Case(row).String(); x != y {
				t.Fatalf("stream %d: %s\nand then %s", n, x, y)
			}
		}
	}
}
