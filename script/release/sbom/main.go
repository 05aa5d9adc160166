// Command sbom writes what a program is made of, with the licence of each part, as CycloneDX:
// sbom VERSION DOCUMENT PROGRAM, with relative paths as seen from dist.
//
// cyclonedx-gomod reads the modules out of the program. Licences it only guesses, by how much
// a text is like others (the MCP SDK it takes for its documents' licence, and what lets its user
// choose for the other choice), so these come from licences.txt beside this, which people have
// read. A part without one is an error.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION DOCUMENT PROGRAM")
		os.Exit(2)
	}
	if err := write(os.Args[1], fromDist(os.Args[2]), fromDist(os.Args[3])); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// fromDist is a path as goreleaser has it. This runs in script/release.
func fromDist(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("..", "..", "dist", path)
}

func write(version, document, program string) error {
	licences, err := readLicences("licences.txt")
	if err != nil {
		return err
	}
	list := exec.Command("go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", version, "-output", "-", program)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the modules of %s: %w", program, err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(out), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return fmt.Errorf("read the list of %s: %w", program, err)
	}
	if bom.Metadata == nil || bom.Metadata.Component == nil || bom.Components == nil {
		return fmt.Errorf("the list of %s names nothing", program)
	}
	parts := []*cdx.Component{bom.Metadata.Component}
	for i := range *bom.Components {
		parts = append(parts, &(*bom.Components)[i])
	}
	var errs []error
	for _, p := range parts {
		terms := licences[p.Name]
		switch {
		case terms == "":
			errs = append(errs, fmt.Errorf("%s %s is not in script/release/licences.txt: read its licence, and add it", p.Name, p.Version))
		case strings.Contains(terms, " "):
			p.Licenses = &cdx.Licenses{{Expression: terms}}
		default:
			p.Licenses = &cdx.Licenses{{License: &cdx.License{ID: terms}}}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(&bom); err != nil {
		return err
	}
	return os.WriteFile(document, text.Bytes(), 0o644)
}

// readLicences reads the terms of each module.
func readLicences(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		module, terms, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && !strings.HasPrefix(module, "#") {
			out[module] = terms
		}
	}
	return out, nil
}
