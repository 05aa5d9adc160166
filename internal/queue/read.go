package queue

import (
	"errors"
	"fmt"
)

// errNoItem: what lies there is nothing that is read as an item.
var errNoItem = errors.New("no item's file")

var errIrregular = fmt.Errorf("%w: no regular file", errNoItem)

func tooLong(size, most int64) error {
	return fmt.Errorf("%w: %d bytes, more than %d", errNoItem, size, most)
}
