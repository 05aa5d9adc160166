package cli

import (
	"slices"
	"testing"
)

func TestOpenSteps(t *testing.T) {
	for _, tc := range []struct {
		tool, input string
		want        []string
		ok          bool
	}{
		{"TodoWrite", `{"todos":[{"content":"a","status":"pending"},{"content":"b","status":"completed"},{"content":"c","status":"in_progress"}]}`, []string{"a", "c"}, true},
		{"update_plan", `{"explanation":"x","plan":[{"step":"a","status":"in_progress"},{"step":"b","status":"completed"}]}`, []string{"a"}, true},
		{"write_todos", `{"todos":[{"description":"a","status":"pending"},{"description":"b","status":"cancelled"}]}`, []string{"a"}, true},
		{"update_todo", `{"todos":"- [x] a\n- [ ] b\n  * [ ] c\nnothing"}`, []string{"b", "c"}, true},
		{"TodoWrite", `{"todos":[]}`, nil, true},
		{"TodoWrite", `{"todos":[{"content":"1","status":"pending"},{"content":"2","status":"pending"},{"content":"3","status":"pending"},{"content":"4","status":"pending"},{"content":"5","status":"pending"},{"content":"6","status":"pending"}]}`,
			[]string{"1", "2", "3", "4", "and 2 more"}, true},
		{"TodoWrite", `{"todos":7}`, nil, false},
		{"TodoWrite", `no JSON`, nil, false},
		{"Bash", `{"todos":[{"content":"a","status":"pending"}]}`, nil, false},
	} {
		if got, ok := openSteps(tc.tool, []byte(tc.input)); ok != tc.ok || !slices.Equal(got, tc.want) {
			t.Errorf("%s %s: %q %v", tc.tool, tc.input, got, ok)
		}
	}
}
