package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type createArguments struct {
	Name string `json:"name" jsonschema:"the task, such as fix-login"`
	Base string `json:"base,omitempty" jsonschema:"branch, tag or commit; default the human's HEAD"`
}

func (a createArguments) check() error {
	return errors.Join(filled("name", a.Name, "name the task, such as fix-login"), shortEnough("base", a.Base, pathMost))
}
func (a createArguments) logged() map[string]any {
	return map[string]any{"name": a.Name, "base": a.Base}
}
func (a createArguments) sandbox() string { return a.Name }

type openArguments struct {
	Name string `json:"name" jsonschema:"as sandbox-list shows it"`
}

func (a openArguments) check() error {
	return filled("name", a.Name, "sandbox-list shows the names")
}
func (a openArguments) logged() map[string]any { return map[string]any{"name": a.Name} }
func (a openArguments) sandbox() string        { return a.Name }

// openResult is the sandbox a session works on from now on.
type openResult struct {
	Name    string   `json:"name"`
	Branch  string   `json:"branch"`
	Base    string   `json:"base" jsonschema:"commit it started from"`
	Path    string   `json:"path" jsonschema:"where the project stands inside"`
	Network string   `json:"network" jsonschema:"none, a number of rules, or open"`
	Ports   []port   `json:"ports,omitempty" jsonschema:"reachable from outside"`
	Steps   []step   `json:"steps" jsonschema:"the last steps, newest first"`
	Notes   []string `json:"notes"`
	Session string   `json:"session,omitempty" jsonschema:"pass it to every other tool"`
	created bool
}

func (r openResult) text() string {
	var b strings.Builder
	verb := "opened"
	if r.created {
		verb = "created"
	}
	fmt.Fprintf(&b, "%s sandbox %s on branch %s at %s\nproject: %s\nnetwork: %s\n", verb, r.Name, r.Branch, short(r.Base), r.Path, r.Network)
	if r.Session != "" {
		fmt.Fprintf(&b, "session: %s\n", r.Session)
	}
	for _, p := range r.Ports {
		fmt.Fprintf(&b, "port: %s\n", p.line())
	}
	for _, s := range r.Steps {
		b.WriteString(s.line())
	}
	writeNotes(&b, r.Notes)
	return b.String()
}

func runCreate(ctx context.Context, c *call, in createArguments) (openResult, error) {
	made, err := c.Engine.Create(ctx, engine.CreateRequest{Dir: c.Dir, Name: in.Name, Base: in.Base})
	if err != nil {
		return openResult{}, err
	}
	hold, notes, err := c.session.take(ctx, c.Dir, made.Name)
	if err != nil {
		return openResult{}, err
	}
	ports, err := c.ports(ctx, hold.Name)
	if err != nil {
		notes = append(notes, "its ports are not known: "+err.Error())
	}
	return openResult{
		Name: hold.Name, Branch: made.Branch, Base: made.Base, Path: made.Repository, Network: made.Network,
		Ports: ports, Steps: []step{}, Notes: notesOf(made.Notes, notes), Session: c.handle(), created: true,
	}, nil
}

func runOpen(ctx context.Context, c *call, in openArguments) (openResult, error) {
	slug, err := sandbox.Slug(in.Name)
	if err != nil {
		return openResult{}, err
	}
	hold, notes, err := c.session.take(ctx, c.Dir, slug)
	if err != nil {
		return openResult{}, err
	}
	status, err := c.Engine.Status(ctx, c.Dir, hold.Name)
	if err != nil {
		return openResult{}, err
	}
	steps, err := lastSteps(ctx, c, hold.Name, 5)
	if err != nil {
		return openResult{}, err
	}
	return openResult{
		Name: hold.Name, Branch: status.Branch, Base: status.Base, Path: status.Repository, Network: status.Network,
		Ports: portsOf(status.Ports), Steps: steps, Notes: notesOf(notes), Session: c.handle(),
	}, nil
}

// handle is the session as the client must name it; empty where the protocol names
// it.
func (c *call) handle() string {
	if !c.explicit {
		return ""
	}
	return c.session.id
}

// notesOf joins lists of notes into one that is not null in JSON.
func notesOf(lists ...[]string) []string {
	all := []string{}
	for _, list := range lists {
		for _, note := range list {
			all = append(all, printable(note))
		}
	}
	return all
}

func writeNotes(b *strings.Builder, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(b, "note: %s\n", note)
	}
}

// short is a commit as people read it.
func short(commit string) string {
	return commit[:min(len(commit), 8)]
}
