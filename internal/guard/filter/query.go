package filter

import "strings"

// Query finds in a program for jq or yq the names of what does more than filter
// its input: what tells the environment, loads files or runs a program. Names
// inside of texts and after a dot are none.
func Query(program string) []string {
	var found []string
	for i := 0; i < len(program); {
		switch c := program[i]; {
		case c == '"':
			i = text(program, i, &found)
		case c == '#':
			for i < len(program) && program[i] != '\n' {
				i++
			}
		case c == '.':
			// A field's name, or the last part of a module's.
			for i++; i < len(program) && nameByte(program[i]); i++ {
			}
		case c == '$' || nameByte(c):
			end := i + 1
			for end < len(program) && (nameByte(program[end]) || program[end] == ':' && end+1 < len(program) && program[end+1] == ':') {
				end++
			}
			name := program[i:end]
			i = end
			rest := strings.TrimLeft(program[i:], " \t\n")
			if strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "::") {
				continue // the name of a field in an object
			}
			switch name {
			case "env", "$ENV", "strenv", "envsubst", "import", "include", "load", "load_str", "load_base64", "load_props", "load_xml", "eval", "system", "get_search_list", "$__prog_args":
				found = append(found, name)
			}
		default:
			i++
		}
	}
	return found
}

// text goes over a text that begins at i, and looks into what is put into it.
func text(program string, i int, found *[]string) int {
	for i++; i < len(program); i++ {
		switch program[i] {
		case '"':
			return i + 1
		case '\\':
			if i+1 < len(program) && program[i+1] == '(' {
				depth, start := 1, i+2
				for i = start; i < len(program) && depth > 0; i++ {
					switch program[i] {
					case '(':
						depth++
					case ')':
						depth--
					}
				}
				*found = append(*found, Query(program[start:max(start, min(i, len(program)))])...)
				i--
				continue
			}
			i++
		}
	}
	return i
}

func nameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
