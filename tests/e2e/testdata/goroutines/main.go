// A program whose goroutines wait for different things, and that ends as its argument
// says: by a panic, a nil pointer or a deadlock.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"
)

var (
	mu    sync.Mutex
	cond  = sync.NewCond(new(sync.Mutex))
	total int
)

type item struct {
	n    int
	name string
	next *item
}

func worker(in <-chan item, added chan<- bool, done *sync.WaitGroup) {
	defer done.Done()
	for it := range in {
		add(it.n)
		added <- true
	}
}

//go:noinline
func add(n int) {
	mu.Lock()
	total += n // ADD
	mu.Unlock()
}

//go:noinline
func twice(n int) int { return 2 * n }

func receive(c chan int)    { <-c }
func send(c chan int)       { c <- 1 }
func lock()                 { mu.Lock() }
func wait()                 { cond.L.Lock(); cond.Wait() }
func read(fd int, b []byte) { _, _ = syscall.Read(fd, b) }

func deep(n int, c chan int) {
	if n > 0 {
		deep(n-1, c)
		return
	}
	select {
	case <-c:
	case c <- 2:
	}
}

//go:noinline
func store(m map[string]int, p *item) int {
	m["total"] = total // STORE
	return p.n
}

//go:noinline
func ready() { total++ }

func main() {
	in, added := make(chan item), make(chan bool)
	var done sync.WaitGroup
	for range 4 {
		done.Add(1)
		go worker(in, added, &done)
	}
	for i := range 20 {
		in <- item{n: i, name: fmt.Sprint("item ", i)}
		<-added // so in this order, whichever worker adds
	}
	close(in)
	done.Wait()
	fmt.Println("total", total, twice(total))

	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		panic(err)
	}
	never := make(chan int)
	mu.Lock()
	for i := range 5 {
		go receive(never)
		go lock()
		go deep(i, make(chan int))
	}
	go send(make(chan int))
	go wait()
	end := os.Args[1]
	if end != "deadlock" {
		go read(p[0], make([]byte, 10)) // a thread of its own
		go time.Sleep(time.Hour)
	}
	go pprof.Do(context.Background(), pprof.Labels("shop", "north", "item", "tea"), func(context.Context) { <-never })
	go func() { select {} }()
	for range 100 {
		runtime.Gosched()
	}
	if end != "deadlock" {
		time.Sleep(20 * time.Millisecond)
	}
	ready()
	switch end {
	case "panic":
		store(nil, &item{})
	case "nil":
		go store(map[string]int{}, nil)
	}
	done.Add(1)
	done.Wait()
}
