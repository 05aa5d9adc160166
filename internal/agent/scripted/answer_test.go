package scripted

import (
	"encoding/json"
	"testing"
)

// What a step of a task says at its end is JSON, whatever the path that it names.
func TestAnswerIsJSON(t *testing.T) {
	for _, file := range []string{"a.md", `/tmp/q"x/a\b.md`, "größe\n.md"} {
		var got struct{ Artifacts []string }
		if err := json.Unmarshal([]byte(delegateAnswer(file)), &got); err != nil || len(got.Artifacts) != 1 || got.Artifacts[0] != file {
			t.Errorf("%q: %+v, %v", file, got, err)
		}
	}
}
