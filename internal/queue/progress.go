package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseProgress reads how far a piece of work is: JSON with steps_completed,
// steps_total and current_step, or as people write it, "3/10 what is being done".
func ParseProgress(text string) (Progress, error) {
	var p Progress
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return p, fmt.Errorf("read progress: %w", err)
		}
		p.Updated = time.Time{} // the queue's own
	} else {
		steps, step, _ := strings.Cut(text, " ")
		done, total, ok := strings.Cut(steps, "/")
		var errs error
		var err error
		p.StepsCompleted, err = strconv.Atoi(done)
		errs = errors.Join(errs, err)
		p.StepsTotal, err = strconv.Atoi(total)
		if errs = errors.Join(errs, err); !ok || errs != nil {
			return p, fmt.Errorf("read progress %q: write it as 3/10 and what is being done, or as JSON", cut(text, 60))
		}
		p.CurrentStep = cut(strings.Join(strings.Fields(step), " "), 200)
	}
	if p.StepsCompleted < 0 || p.StepsTotal < 0 || p.StepsTotal > 0 && p.StepsCompleted > p.StepsTotal {
		return p, fmt.Errorf("read progress: %d of %d steps cannot be", p.StepsCompleted, p.StepsTotal)
	}
	return p, nil
}
