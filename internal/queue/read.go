package queue

import "errors"

// errNoItem: what lies there is nothing that is read as an item.
var errNoItem = errors.New("no item's file")
