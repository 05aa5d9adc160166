package quick_test

import (
	"encoding/json"
	"testing"
	"time"

	"reprise/internal/event/quick"
)

func TestHookTime(t *testing.T) {
	for _, data := range []string{``, `{}`, `{"text":"x"}`, `{"a":{"hook_us":5}}`, `{"text":"\"hook_us\":5}"}`} {
		if took, ok := quick.HookTime([]byte(data)); ok {
			t.Errorf("%s: has %v, which nobody put there", data, took)
		}
		with := quick.WithHookTime([]byte(data), 1234567*time.Nanosecond)
		if took, ok := quick.HookTime(with); !ok || took != 1234*time.Microsecond || !json.Valid(with) {
			t.Errorf("%s: %s has %v, %t", data, with, took, ok)
		}
	}
	if got := quick.WithHookTime([]byte(`{"text":"x"}`), -time.Second); string(got) != `{"text":"x"}` {
		t.Errorf("a clock that was set back: %s", got)
	}
	for _, data := range []string{`{"hook_us":-5}`, `{"hook_us":5.5}`, `{"hook_us":"5"}`, `{"hook_us":99999999999999999999}`, `{"x_hook_us":5}`, `{"hook_us":5`, `"hook_us":5}`} {
		if took, ok := quick.HookTime([]byte(data)); ok {
			t.Errorf("%s: %v", data, took)
		}
	}
}
