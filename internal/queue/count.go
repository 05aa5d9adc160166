package queue

import "context"

// Count is how many items are in each state, told from the names of the files alone: a
// look that costs no more with long items. Files whose names the queue does not give are
// left out; Check tells of them.
func (q *Files) Count(context.Context) (map[State]int, error) {
	n := map[State]int{}
	for _, s := range States() {
		list, _, err := q.places(s)
		if err != nil {
			return n, err
		}
		if len(list) > 0 {
			n[s] = len(list)
		}
	}
	return n, nil
}
