package attribute

import "bytes"

// endings reports whether line endings are converted.
type endings int

const (
	asIs   endings = iota
	always         // the file is declared to be text
	guess          // git looks at the content first
)

// lineEndings combines attributes and configuration. The result crlf reports
// whether lines end in CRLF in the work tree.
func lineEndings(a Attributes, s Settings) (e endings, crlf bool) {
	text := a.Text
	if text == TextUnspecified {
		text = a.CRLF
	}
	switch {
	case text == TextUnset:
		return asIs, false
	case text == TextAuto && a.EOL == "":
		return guess, s.crlf()
	case text == TextAuto:
		return guess, a.EOL == "crlf"
	case a.EOL != "": // implies text
		return always, a.EOL == "crlf"
	case text == TextInput:
		return always, false
	case text == TextSet:
		return always, s.crlf()
	case s.AutoCRLF == "true" || s.AutoCRLF == "input":
		return guess, s.AutoCRLF == "true"
	}
	return asIs, false
}

// crlf reports whether a text file gets CRLF in the work tree when no attribute
// says so. The native ending is LF on every system that litterbox runs on.
func (s Settings) crlf() bool {
	return s.AutoCRLF == "true" || s.AutoCRLF != "input" && s.EOL == "crlf"
}

// census counts what git looks at to guess text or binary (gather_stats in its
// convert.c).
type census struct {
	loneCR, loneLF, crlf         int
	nul, printable, nonprintable int
}

func count(content []byte) census {
	var n census
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '\r' && i+1 < len(content) && content[i+1] == '\n':
			n.crlf++
			i++
		case c == '\r':
			n.loneCR++
		case c == '\n':
			n.loneLF++
		case c == 0:
			n.nul++
			n.nonprintable++
		case c >= ' ' && c != 0x7f, c == '\b', c == '\t', c == '\f', c == 0x1b:
			n.printable++
		default:
			n.nonprintable++
		}
	}
	// DOS ended a text file with ^Z.
	if bytes.HasSuffix(content, []byte{0x1a}) {
		n.nonprintable--
	}
	return n
}

func (n census) binary() bool {
	return n.loneCR > 0 || n.nul > 0 || n.printable>>7 < n.nonprintable
}

// HasCRLF reports whether a blob is text with CRLF line endings. Where git
// guesses, a file with such a blob keeps its CRLF, so that turning on a
// conversion does not rewrite untouched files.
func HasCRLF(blob []byte) bool {
	if bytes.IndexByte(blob, '\r') < 0 {
		return false
	}
	n := count(blob)
	return n.crlf > 0 && !n.binary()
}

func dropCRs(content []byte) []byte {
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}

func dropGuessedCRs(content []byte, storedHasCRLF func() bool) []byte {
	if bytes.IndexByte(content, '\r') < 0 {
		return content
	}
	n := count(content)
	if n.crlf == 0 || n.binary() || storedHasCRLF != nil && storedHasCRLF() {
		return content
	}
	return dropCRs(content)
}

func addCRs(content []byte, e endings) []byte {
	n := count(content)
	if n.loneLF == 0 || e == guess && (n.loneCR > 0 || n.crlf > 0 || n.binary()) {
		return content
	}
	converted := make([]byte, 0, len(content)+n.loneLF)
	for i, c := range content {
		if c == '\n' && (i == 0 || content[i-1] != '\r') {
			converted = append(converted, '\r')
		}
		converted = append(converted, c)
	}
	return converted
}
