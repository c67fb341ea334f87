package tutorial

import (
	"fmt"
	"strings"
)

// page is a tutorial: its blocks and the text between them, in order.
type page struct{ parts []part }

// part is a piece of a page. Exactly one of its fields is set.
type part struct {
	text    string // as it is in the page
	file    *file
	session []step
}

// file is a block that is saved at a path.
type file struct{ fence, path, content string }

// step is one command of a session and what it prints.
type step struct{ command, output string }

const fence = "```"

// parse reads a page.
func parse(content string) (page, error) {
	var p page
	lines := strings.SplitAfter(content, "\n")
	for at := 0; at < len(lines); at++ {
		info, opens := strings.CutPrefix(lines[at], fence)
		if !opens {
			p.parts = append(p.parts, part{text: lines[at]})
			continue
		}
		first := at + 1
		for at = first; at < len(lines) && strings.TrimSpace(lines[at]) != fence; at++ {
		}
		if at >= len(lines) {
			return page{}, fmt.Errorf("the block of line %d does not end", first)
		}
		body := strings.Join(lines[first:at], "")
		kind, path, _ := strings.Cut(strings.TrimSpace(info), " ")
		switch {
		case path != "":
			p.parts = append(p.parts, part{file: &file{fence: kind, path: path, content: body}})
		case strings.HasPrefix(body, prompt):
			p.parts = append(p.parts, part{session: steps(body)})
		default:
			p.parts = append(p.parts, part{text: fence + info + body + fence + "\n"})
		}
	}
	return p, nil
}

const prompt = "$ "

// steps splits a session into its commands.
func steps(body string) []step {
	var all []step
	for line := range strings.Lines(body) {
		if command, typed := strings.CutPrefix(line, prompt); typed {
			all = append(all, step{command: strings.TrimSuffix(command, "\n")})
			continue
		}
		last := &all[len(all)-1]
		last.output += line
	}
	return all
}

// String returns the page as written.
func (p page) String() string {
	var b strings.Builder
	for _, part := range p.parts {
		switch {
		case part.file != nil:
			b.WriteString(fence + part.file.fence + " " + part.file.path + "\n" + part.file.content + fence + "\n")
		case part.session != nil:
			b.WriteString(fence + "\n")
			for _, step := range part.session {
				b.WriteString(prompt + step.command + "\n" + step.output)
			}
			b.WriteString(fence + "\n")
		default:
			b.WriteString(part.text)
		}
	}
	return b.String()
}
