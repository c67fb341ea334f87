package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// wording is a question in parts; the size of the screen decides how much is shown.
// The end of a host decides who is reached, so it is never cut off.
type wording struct {
	who     string // wants to reach
	where   string // host and port
	over    string // the protocol, where it matters
	rest    string // why, and what speaks against it
	rule    string // what would be allowed
	refuses string // what Return refuses

	signature bool // it is about one: who also holds what is wanted
}

// longest bounds how much is shown of a program's name, which it chooses itself,
// and of a rule beside the answers.
const longest = 40

func word(q engine.Question) wording {
	if q.Signature != nil {
		w := wording{who: clean(q.Signature.Purpose), where: head(clean(cmp.Or(q.Signature.Comment, q.Signature.Key)), longest), signature: true}
		if q.Waiting > 0 {
			w.rest = "; " + count(q.Waiting, "more question") + " waiting"
		}
		return w
	}
	w := wording{who: head(clean(q.Process), longest), rule: clean(q.Rule), rest: ", which no rule allows", refuses: "Return refuses: "}
	if w.who == "" {
		w.who = "a program"
	}
	host := q.Host
	if host == "" {
		host = q.Addr.String()
	}
	w.where = clean(joinPort(host, q.Port))
	if q.Protocol == "udp" {
		w.over = " over UDP"
	}
	if q.More > 0 {
		w.rest += "; so it is with " + strconv.Itoa(q.More) + " more of its ports"
		w.refuses = "Return refuses all " + strconv.Itoa(q.More+1) + ": "
	}
	if q.Waiting > 0 {
		w.rest += "; " + count(q.Waiting, "more question") + " waiting"
	}
	if q.Warning != "" {
		w.rest += " (" + clean(q.Warning) + ")"
	}
	return w
}

// text is the question in full.
func (w wording) text() string {
	if w.signature {
		return fmt.Sprintf("litterbox: a program wants to %s with your key %s%s", w.who, w.where, w.rest)
	}
	return fmt.Sprintf("litterbox: %s wants to reach %s%s%s", w.who, w.where, w.over, w.rest)
}

// prompt stands before the answer: the longest form that fits into cols, and
// the shortest where none does.
func (w wording) prompt(cols int) string {
	forms := []string{
		"sign [o]nce, [d]eny all from now on; Return refuses: ",
		"o, d or Return to refuse: ",
		"o d Return: ",
	}
	if w.signature {
		return fitting(forms, cols)
	}
	forms = []string{
		"allow " + tail(w.rule, longest) + " [o]nce, for this [s]andbox, this [r]epository, [n]ever, [d]eny all from now on; " + w.refuses,
		"[o]nce, this [s]andbox, this [r]epository, [n]ever, [d]eny all from now on; " + w.refuses,
		"[o]nce [s]andbox [r]epository [n]ever [d]eny all; " + w.refuses,
		"o, s, r, n, d or Return to refuse: ",
		"o s r n d Return: ",
		"osrnd? ",
	}
	return fitting(forms, cols)
}

// fitting is the first form that fits, or the last one.
func fitting(forms []string, cols int) string {
	for _, form := range forms {
		if len(form) <= cols {
			return form
		}
	}
	return forms[len(forms)-1]
}

// again asks for an answer once more.
func (w wording) again() string {
	if w.signature {
		return "o, d or nothing? "
	}
	return "o, s, r, n, d or nothing? "
}

// lines lays the question out on a screen of that many columns and rows, without
// the prompt. When there is too little room the reason goes first, then the asking
// program, and then the head of the host.
func (w wording) lines(cols, rows int) []string {
	cols, rows = max(1, cols), max(1, rows)
	text := w.text()
	shorter := []string{text, fmt.Sprintf("litterbox: %s: %s%s", w.who, w.where, w.over), "to " + w.where + w.over + "?"}
	if w.signature { // its end names the host
		shorter = []string{text, "litterbox: " + w.who + "?"}
		w.where = w.who
	}
	for _, text := range shorter {
		if text = plain(text); len(text) <= cols {
			return []string{text}
		}
	}
	for _, shorter := range []string{w.who + " to " + w.where + w.over, w.where + w.over, w.where} {
		if len(text) > cols*rows {
			text = shorter
		}
	}
	text = tail(plain(text), cols*rows)
	var lines []string
	for len(text) > cols {
		lines, text = append(lines, text[:cols]), text[cols:]
	}
	return append(lines, text)
}

// head and tail are the beginning and the end of a long text.
func head(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

func tail(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return "<" + string(runes[len(runes)-width+1:])
	}
	return text
}

// plain leaves one column for each byte.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, text)
}

// spread is the part of a screen that a question takes.
type spread struct{ cols, rows, top int }

// show puts the question on the terminal; the prompt follows when an answer
// counts.
func (a *asking) show(w wording) spread {
	if !a.screen.whole {
		a.write("\r\n" + w.text() + "\r\n")
		return spread{}
	}
	size := a.size()
	s := spread{cols: int(size.Cols), rows: int(size.Rows)}
	lines := w.lines(s.cols-1, min(s.rows-1, s.rows/2+1))
	s.top = max(1, s.rows-len(lines))
	a.write("\x1b7") // saves the cursor
	for i, line := range lines {
		a.write(fmt.Sprintf("\x1b[%d;1H\x1b[2K%s", s.top+i, line))
	}
	a.write(fmt.Sprintf("\x1b[%d;1H\x1b[2K", s.rows))
	return s
}

// invite shows that an answer counts from now on.
func (a *asking) invite(w wording, s spread) {
	if a.screen.whole {
		a.write(w.prompt(s.cols - len("once") - 1))
		return
	}
	a.write(w.prompt(1 << 10))
}

// restore leaves the screen to the command again.
func (a *asking) restore(ctx context.Context, s spread) {
	if !a.screen.whole {
		return
	}
	for row := s.top; row <= s.rows; row++ {
		a.write(fmt.Sprintf("\x1b[%d;1H\x1b[2K", row))
	}
	a.write("\x1b8")
	a.redraw(ctx)
}
