package core

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "live this one night, and tell of each of its steps")
	howMany  = flag.Uint64("nights", 0, "how many nights to live; 0 is 100,000, or two million with REPRISE_LONG_TESTS")
	firstBad = flag.Bool("first", false, "end at the first bad night")
)

// TestNights lives nights through in which everything goes wrong that can: loops
// that are killed at any moment, runs that crash, stall, ask, cost too much, rate
// limits, lost leases, clocks that jump, disks that are full, and a person who
// interrupts. A night that goes wrong is lived again, step by step, by
//
//	go test ./internal/loop/core -run Nights -seed N
func TestNights(t *testing.T) {
	if *oneSeed != 0 {
		var w world
		newWorld(&w, *oneSeed)
		w.tracing = true
		why := w.night()
		t.Log("\n" + strings.Join(w.trace, "\n"))
		if why != "" {
			t.Error(why)
		}
		return
	}
	nights := *howMany
	if nights == 0 {
		if nights = 100_000; os.Getenv("REPRISE_LONG_TESTS") != "" {
			nights = 2_000_000
		}
	}
	began := time.Now()
	sum, bad := live(nights)
	for _, why := range bad {
		t.Error(why)
	}
	t.Logf("%d nights in %s: %d runs, %d items done, %d given up, %d set aside, %d leases lost, %d interrupts, %d left as they were, %d seen to beside it, %d times held",
		nights, time.Since(began).Round(time.Millisecond), sum.launches, sum.Done, sum.GivenUp, sum.Parked, sum.Lost, sum.Interrupts, sum.lefts, sum.gones, sum.helds)
	// A simulation in which nothing happens proves nothing.
	for name, n := range map[string]int{"done": sum.Done, "lost": sum.Lost, "set aside": sum.Parked, "given up": sum.GivenUp, "interrupts": sum.Interrupts, "left": sum.lefts, "seen to": sum.gones, "held": sum.helds} {
		if nights >= 10_000 && uint64(n) < nights/100 {
			t.Errorf("only %d %s in %d nights", n, name, nights)
		}
	}
}

type total struct {
	Tally
	launches, lefts, gones, helds int
}

// live lives nights on all processors, and says what went wrong in the first bad ones.
func live(nights uint64) (sum total, bad []string) {
	var next atomic.Uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var w world
			var own total
			for {
				seed := next.Add(1)
				if seed > nights {
					break
				}
				why := oneNight(&w, seed)
				own.launches += w.launches
				own.lefts += w.lefts
				own.gones += w.gones
				own.helds += w.helds
				own.Done += w.s.Tally.Done
				own.Lost += w.s.Tally.Lost
				own.Parked += w.s.Tally.Parked
				own.GivenUp += w.s.Tally.GivenUp
				own.Interrupts += w.s.Tally.Interrupts
				if why == "" {
					continue
				}
				mu.Lock()
				bad = append(bad, fmt.Sprintf("night %d: %s", seed, why))
				if len(bad) >= 5 || *firstBad {
					next.Store(nights)
				}
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			sum.launches += own.launches
			sum.lefts += own.lefts
			sum.gones += own.gones
			sum.helds += own.helds
			sum.Done, sum.Lost, sum.Parked = sum.Done+own.Done, sum.Lost+own.Lost, sum.Parked+own.Parked
			sum.GivenUp, sum.Interrupts = sum.GivenUp+own.GivenUp, sum.Interrupts+own.Interrupts
		})
	}
	wg.Wait()
	return sum, bad
}

func oneNight(w *world, seed uint64) (why string) {
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Sprint("panic: ", p)
		}
	}()
	newWorld(w, seed)
	return w.night()
}

// TestSameNight: what one seed leads to does not depend on anything else.
func TestSameNight(t *testing.T) {
	for seed := uint64(1); seed < 50; seed++ {
		var a, b world
		newWorld(&a, seed)
		a.night()
		newWorld(&b, seed+1)
		b.night()
		newWorld(&b, seed)
		b.night()
		if fmt.Sprintf("%+v", a.items) != fmt.Sprintf("%+v", b.items) || a.t != b.t || a.steps != b.steps {
			t.Fatalf("night %d is another the second time", seed)
		}
	}
}
