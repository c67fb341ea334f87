package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func TestInit(t *testing.T) {
	var got engine.InitRequest
	e := &fake{init: func(r engine.InitRequest) (engine.Initialized, error) {
		got = r
		made := engine.Initialized{File: "/p/.litterbox.toml", Text: "# text\n", Found: []string{"go.mod: dependencies"}}
		if r.Confirm == nil {
			made.Written = true
			return made, nil
		}
		var err error
		made.Written, err = r.Confirm(made.File, made.Text)
		return made, err
	}}
	wantOutcome(t, lb(t, e, "", "init", "--yes", "--template", "go"), outcome{
		0, "wrote /p/.litterbox.toml\n", "note: look it over; network rules take effect after: litterbox trust\n",
	})
	if got.Dir != here(t) || got.Template != "go" || got.Force {
		t.Errorf("it asks for %+v", got)
	}
	golden(t, "json/init.json", lb(t, e, "", "init", "--yes", "--json").Stdout)
	// Without a terminal it shows the text and writes nothing.
	out := lb(t, e, "", "init", "--from", "x.toml", "--force")
	if out.Code == 0 || out.Stdout != "# text\n" || !strings.Contains(out.Stderr, "litterbox init --yes") {
		t.Errorf("without an answer: %+v", out)
	}
	if got.From != filepath.Join(here(t), "x.toml") || !got.Force {
		t.Errorf("it asks for %+v", got)
	}
}
