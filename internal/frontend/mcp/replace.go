package mcp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// replaced is a text after an edit.
type replaced struct {
	content []byte
	lines   []int // where replacements begin
	count   int
}

// apply makes an edit in the content of the file at path. Lines that end in CR LF
// keep doing so. With quote an error may show the file's content.
func (e edit) apply(path string, content []byte, quote bool) (replaced, error) {
	if !utf8.Valid(content) && !isASCII(e.New) {
		return replaced{}, fault.New(fault.Unsupported, "cannot edit %q: it is not UTF-8, and new holds characters beyond ASCII", path).
			WithHint("write new in ASCII, or convert the file with iconv in sandbox-exec first")
	}
	if e.Old == "" {
		return e.replaceLine(path, content)
	}
	old := []byte(e.Old)
	places := occurrences(content, old)
	if len(places) == 0 && strings.Contains(e.Old, "\n") && bytes.Contains(content, []byte("\r\n")) {
		old = []byte(crlf(e.Old))
		places = occurrences(content, old)
	}
	if e.Line > 0 {
		places = beginning(content, places, e.Line)
	}
	switch {
	case len(places) == 0:
		return replaced{}, e.missing(path, content, quote)
	case len(places) > 1 && !e.ReplaceAll && !quote:
		return replaced{}, fault.New(fault.Invalid, "cannot edit %q: old occurs more than once", path).
			WithHint("put more of what stands around it into old, name its line, or set replace_all")
	case len(places) > 1 && !e.ReplaceAll:
		var lines []int
		for _, at := range places[:min(len(places), 20)] {
			lines = append(lines, lineOf(content, at))
		}
		return replaced{}, fault.New(fault.Invalid, "cannot edit %q: old occurs %d times, in lines %s", path, len(places), someLines(lines, len(places))).
			WithHint("put more of what stands around it into old, name its line, or set replace_all")
	}
	out := replaced{count: len(places)}
	from := 0
	for _, at := range places {
		out.content = append(out.content, content[from:at]...)
		out.content = append(out.content, e.fitting(content, at)...)
		from = at + len(old)
		if len(out.lines) < 100 {
			out.lines = append(out.lines, lineOf(content, at))
		}
	}
	out.content = append(out.content, content[from:]...)
	return out, nil
}

// replaceLine replaces one line as a whole; an empty new deletes it.
func (e edit) replaceLine(path string, content []byte) (replaced, error) {
	at, end := lineBounds(content, e.Line)
	if at == len(content) {
		return replaced{}, fault.New(fault.Invalid, "cannot edit line %d of %q: it has %d lines", e.Line, path, lineOf(content, len(content))-1).
			WithHint("sandbox-read shows the file")
	}
	text := e.fitting(content, at)
	if ending := content[end-1 : end]; len(text) > 0 && ending[0] == '\n' && !bytes.HasSuffix(text, ending) {
		if end-at > 1 && content[end-2] == '\r' {
			ending = content[end-2 : end]
		}
		text = append(text, ending...)
	}
	return replaced{content: bytes.Join([][]byte{content[:at], text, content[end:]}, nil), lines: []int{e.Line}, count: 1}, nil
}

// lineBounds gives where a line begins and where the next one does.
func lineBounds(content []byte, line int) (at, end int) {
	for ; line > 1 && at < len(content); line-- {
		next := bytes.IndexByte(content[at:], '\n') + 1
		if next == 0 {
			return len(content), len(content)
		}
		at += next
	}
	if next := bytes.IndexByte(content[at:], '\n') + 1; next > 0 {
		return at, at + next
	}
	return at, len(content)
}

// fitting is new with the line ends of the line where it goes.
func (e edit) fitting(content []byte, at int) []byte {
	end := bytes.IndexByte(content[at:], '\n')
	if end > 0 && content[at+end-1] == '\r' || end == 0 && at > 0 && content[at-1] == '\r' {
		return []byte(crlf(e.New))
	}
	return []byte(e.New)
}

// crlf ends every line in CR LF.
func crlf(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// occurrences finds the places of old, none overlapping another.
func occurrences(content, old []byte) (places []int) {
	for from := 0; ; {
		next := bytes.Index(content[from:], old)
		if next < 0 {
			return places
		}
		places = append(places, from+next)
		from += next + len(old)
	}
}

// beginning keeps the places in a line.
func beginning(content []byte, places []int, line int) (kept []int) {
	from, to := lineBounds(content, line)
	for _, at := range places {
		if from <= at && at < to {
			kept = append(kept, at)
		}
	}
	return kept
}

// missing says why old is not there, as far as that can be seen.
func (e edit) missing(path string, content []byte, quote bool) error {
	err := fault.New(fault.NotFound, "cannot edit %q: old does not occur in it", path)
	if e.Line > 0 {
		err = fault.New(fault.NotFound, "cannot edit %q: old does not begin in line %d", path, e.Line)
	}
	again := "sandbox-read it again: old must be there exactly, white space included"
	if !quote {
		return err.WithHint("the file is hidden and cannot be shown here: look at it with sandbox-exec")
	}
	near, how := nearest(content, e.Old)
	switch {
	case !utf8.Valid(content) && !isASCII(e.Old):
		again = fmt.Sprintf("the file is not UTF-8, so %q stands for other bytes: name the line in place of old", string(utf8.RuneError))
	case alike(near.text) != near.text:
		again = "copy it from here, or name the line in place of old: " + strconv.QuoteToASCII(near.text)
	case how != "":
		again = ""
	}
	switch {
	case near.text == "":
		return err.WithHint("%s", again)
	case how == "":
		return err.WithHint("%s comes nearest: %s\n%s", near.where(), limited(strings.TrimSpace(near.text)), limited(again))
	}
	return err.WithHint("%s differs in %s only; there stands exactly:\n%s", near.where(), how, strings.TrimSuffix(limited(near.text)+"\n"+limited(again), "\n"))
}

// passage is some lines of a file.
type passage struct {
	first, last int
	text        string
}

func (p passage) where() string {
	if p.first == p.last {
		return "line " + strconv.Itoa(p.first)
	}
	return "lines " + strconv.Itoa(p.first) + " to " + strconv.Itoa(p.last)
}

// alike is text with plain characters in place of their look-alikes, which models
// and editors mix up.
func alike(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.NewReplacer(
		"\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'", "\u2032", "'",
		"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u2033", `"`,
		"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-",
		"\u00a0", " ", "\u2007", " ", "\u2009", " ", "\u202f", " ", "\u3000", " ",
		"\u2026", "...", "\u00ad", "", "\u200b", "", "\ufeff", "",
	).Replace(text)
}

// nearestMost is how many lines of a file are compared.
const nearestMost = 50_000

// nearest finds what old probably means: the lines that differ from it as how says,
// or else the line most like the longest line of old.
func nearest(content []byte, old string) (near passage, how string) {
	lines, plain := strings.Split(string(content), "\n"), strings.Split(alike(string(content)), "\n")
	lines = lines[:min(len(lines), nearestMost)]
	exact, wanted := strings.Split(strings.Trim(old, "\n"), "\n"), strings.Split(strings.Trim(alike(old), "\n"), "\n")
	for i := range lines {
		if i+len(wanted) > len(lines) || !sameWords(plain[i:i+len(wanted)], wanted) {
			continue
		}
		near = passage{i + 1, i + len(wanted), strings.Join(lines[i:i+len(wanted)], "\n")}
		if sameWords(lines[i:i+len(exact)], exact) {
			return near, "white space"
		}
		return near, "characters that look alike"
	}
	telling := ""
	for _, line := range wanted {
		if line = strings.TrimSpace(line); len(line) > len(telling) {
			telling = line
		}
	}
	best, pairs := 0.5, pairsOf(telling)
	for i, line := range lines {
		if like := similar(pairs, pairsOf(line)); like > best {
			best, near = like, passage{i + 1, i + 1, line}
		}
	}
	return near, ""
}

// sameWords reports whether lines are the same but for white space.
func sameWords(lines, wanted []string) bool {
	for i := range wanted {
		if strings.Join(strings.Fields(lines[i]), "") != strings.Join(strings.Fields(wanted[i]), "") {
			return false
		}
	}
	return strings.TrimSpace(strings.Join(wanted, "")) != ""
}

// pairsOf counts the pairs of neighbouring bytes of a line's first 500.
func pairsOf(line string) map[string]int {
	line = strings.ToLower(strings.Join(strings.Fields(line[:min(len(line), 500)]), " "))
	pairs := map[string]int{}
	for i := 1; i < len(line); i++ {
		pairs[line[i-1:i+1]]++
	}
	return pairs
}

// similar is the Sørensen–Dice coefficient of two bags of pairs, 0 to 1.
func similar(a, b map[string]int) float64 {
	shared, total := 0, 0
	for pair, n := range a {
		shared += min(n, b[pair])
		total += n
	}
	for _, n := range b {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(shared) / float64(total)
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func lineOf(content []byte, at int) int { return bytes.Count(content[:at], []byte{'\n'}) + 1 }
