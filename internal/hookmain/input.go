package hookmain

import (
	"errors"
	"strconv"
)

var (
	errSlow = errors.New("the client did not finish writing it in time")
	errLong = errors.New("it is longer than " + strconv.Itoa(maxInput>>20) + " MiB")
)
