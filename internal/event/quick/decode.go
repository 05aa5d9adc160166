package quick

// Members calls yield with the name and the raw value of each member of the
// JSON object in src, which is checked whole. It stops at yield's first error.
func Members(src string, yield func(name, raw string) error) error {
	c := &Cleaner{src: src}
	if c.space(); c.at == len(c.src) || c.src[c.at] != '{' {
		return c.bad("no object")
	}
	c.at++
	for n := 0; ; n++ {
		c.space()
		if c.at < len(c.src) && c.src[c.at] == '}' {
			break
		}
		if n > 0 {
			if c.at == len(c.src) || c.src[c.at] != ',' {
				return c.bad("a comma or } is missing")
			}
			c.at++
			c.space()
		}
		if c.at == len(c.src) || c.src[c.at] != '"' {
			return c.bad("a name is missing")
		}
		name, err := c.text()
		if err != nil {
			return err
		}
		if c.space(); c.at == len(c.src) || c.src[c.at] != ':' {
			return c.bad("a colon is missing")
		}
		c.at++
		c.space()
		from := c.at
		if err := c.skip(0); err != nil {
			return err
		}
		if err := yield(name, c.src[from:c.at]); err != nil {
			return err
		}
	}
	c.at++
	if c.space(); c.at < len(c.src) {
		return c.bad("something follows the value")
	}
	return nil
}

// Elements calls yield with each raw value of the JSON list in src.
func Elements(src string, yield func(raw string) error) error {
	c := &Cleaner{src: src}
	if c.space(); c.at == len(c.src) || c.src[c.at] != '[' {
		return c.bad("no list")
	}
	c.at++
	for n := 0; ; n++ {
		c.space()
		if c.at < len(c.src) && c.src[c.at] == ']' {
			return nil
		}
		if n > 0 {
			if c.at == len(c.src) || c.src[c.at] != ',' {
				return c.bad("a comma or ] is missing")
			}
			c.at++
			c.space()
		}
		from := c.at
		if err := c.skip(0); err != nil {
			return err
		}
		if err := yield(c.src[from:c.at]); err != nil {
			return err
		}
	}
}

// Unquote is the text of a JSON string.
func Unquote(raw string) (string, error) {
	c := &Cleaner{src: raw}
	if raw == "" || raw[0] != '"' {
		return "", c.bad("no string")
	}
	s, err := c.text()
	if err == nil && c.at < len(raw) {
		err = c.bad("something follows the string")
	}
	return s, err
}

// skip passes over one value.
func (c *Cleaner) skip(depth int) error {
	c.space()
	if c.at == len(c.src) {
		return c.bad("it ends too early")
	}
	switch b := c.src[c.at]; b {
	case '{', '[':
		if depth == maxDepth {
			return c.bad("nested too deeply")
		}
		c.at++
		return c.skipInside(b+2, depth) // } is two after {, ] two after [
	case '"':
		return c.skipText()
	case 't':
		_, err := c.word(nil, "true")
		return err
	case 'f':
		_, err := c.word(nil, "false")
		return err
	case 'n':
		_, err := c.word(nil, "null")
		return err
	}
	var buf [32]byte
	_, err := c.number(buf[:0])
	return err
}

func (c *Cleaner) skipInside(end byte, depth int) error {
	for n := 0; ; n++ {
		if c.space(); c.at == len(c.src) {
			return c.bad("an object or a list has no end")
		}
		if b := c.src[c.at]; b == end {
			c.at++
			return nil
		} else if n > 0 && b != ',' {
			return c.bad("a comma is missing")
		} else if n > 0 {
			c.at++
			c.space()
		}
		if end == '}' {
			if c.at == len(c.src) || c.src[c.at] != '"' {
				return c.bad("a name is missing")
			}
			if err := c.skipText(); err != nil {
				return err
			}
			if c.space(); c.at == len(c.src) || c.src[c.at] != ':' {
				return c.bad("a colon is missing")
			}
			c.at++
		}
		if err := c.skip(depth + 1); err != nil {
			return err
		}
	}
}

func (c *Cleaner) skipText() error {
	for c.at++; c.at < len(c.src); c.at++ {
		switch b := c.src[c.at]; {
		case b == '"':
			c.at++
			return nil
		case b < ' ':
			return c.bad("a control character in a string")
		case b == '\\':
			c.at++
			if c.at == len(c.src) {
				return c.bad("a string has no end")
			}
			switch c.src[c.at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				c.at++
				if _, ok := c.hex4(); !ok {
					return c.bad("an escape is no \\u and four digits")
				}
				c.at--
			default:
				return c.bad("an unknown escape in a string")
			}
		}
	}
	return c.bad("a string has no end")
}
