package task

import "testing"

func TestOpenAt(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"nothing", "", 0},
		{"closed", "a\n```go\nx\n```\n", 0},
		{"open", "a\n```go\nx\n", 2},
		{"a fence with a word closes nothing", "a\n```\nx\n```go\ny\n", 2},
		{"a fence that is too short closes nothing", "````\nx\n```\ny\n", 1},
		{"another kind closes nothing", "~~~\nx\n```\ny\n", 1},
		{"the second one is open", "```\nx\n```\n\n~~~\ny\n", 5},
		{"a comment", "a\n\n<!-- b\nc\n", 3},
		{"a closed comment in front", "<!-- b\n-->\n\n```\nc\n", 4},
		{"a script", "a\n\n<script>\nc\n", 3},
		{"indented code opens nothing", "a\n\n    ```\n\nb\n", 0},
		{"Windows line ends", "a\r\n```\r\nx\r\n```go\r\n", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := openAt([]byte(tt.text)); got != tt.want {
				t.Errorf("openAt(%q) = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
}
