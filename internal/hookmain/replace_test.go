package hookmain

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A full program that is being put in place is waited for, for half of the hook's
// time at most; one that ran is not started again, whatever it came to.
func TestFullProgramIsWaitedForWhileItIsPut(t *testing.T) {
	ran := errors.New("it ran, and ended with 3")
	for name, tc := range map[string]struct {
		comes  []error // what each try comes to; the last again and again
		want   error
		tries  int // 0 = several
		within time.Duration
	}{
		"there":                   {[]error{nil}, nil, 1, 0},
		"ran and failed":          {[]error{ran}, ran, 1, 0},
		"written just now":        {[]error{syscall.ETXTBSY, syscall.ETXTBSY, syscall.ENOEXEC, nil}, nil, 4, 100 * time.Millisecond},
		"between remove and copy": {[]error{errNoProgram, &fs.PathError{Op: "fork/exec", Err: os.ErrNotExist}, &fs.PathError{Op: "fork/exec", Err: os.ErrPermission}, nil}, nil, 4, 100 * time.Millisecond},
		"replaced, then failed":   {[]error{errNoProgram, ran}, ran, 2, 20 * time.Millisecond},
		"never there":             {[]error{errNoProgram}, errNoProgram, 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p := &program{limit: 2 * time.Second, began: began}
			n := 0
			err := p.whilePut(func() error {
				n++
				return tc.comes[min(n, len(tc.comes))-1]
			})
			took := time.Since(began)
			if !errors.Is(err, tc.want) || tc.tries > 0 && n != tc.tries || tc.tries == 0 && n < 5 || took > tc.within || p.left() < p.limit/2 {
				t.Errorf("%s: %v after %d tries and %s", name, err, n, took)
			}
		})
	}
}
