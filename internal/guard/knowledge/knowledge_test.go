package knowledge

import (
	"bytes"
	"os"
	"testing"
)

// What is compiled in is what the files say.
func TestTableIsTheFiles(t *testing.T) {
	want, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../know/table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("know/table.go is not what the YAML files come to: go generate ./internal/guard/knowledge")
	}
}
