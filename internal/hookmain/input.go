package hookmain

import (
	"errors"
	"time"
)

var errSlow = errors.New("the client did not finish writing it in time")

// bigShare is what of the time for reading a large payload may take: it has to
// be recorded, too.
func bigShare(patience time.Duration) time.Duration { return patience * 2 / 3 }
